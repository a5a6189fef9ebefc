//! The tools: what they are, and their calls.
//!
//! Invariant: a file is read or written only below the directory of the command. An error that a model can act on is the result
//! of a call, not an error of the protocol, which models do not see.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use platen_farm::{Folder, Rendered};
use platen_shared::{
    endpoint::Endpoint,
    format::OutputFormat,
    link::{LinkFile, LinkId},
    request::FieldName,
};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject,
        ListToolsResult, PaginatedRequestParams, ResourceContents, ServerCapabilities, ServerConfig, Tool,
        ToolAnnotations,
    },
    service::RequestContext,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio_util::task::TaskTracker;

use super::{
    picture,
    renderer::{Renderer, SavedTemplates},
    schema::{self, FILE, FILE_NAME, LINK, PATH, VALUES},
};
use crate::cli::{
    link::Signer,
    render::{files, folder::plain},
};

const RENDER: &str = "render";
const LIST_TEMPLATES: &str = "list_templates";
const DESCRIBE_OPTION: &str = "describe_option";
const SIGN_LINK: &str = "sign_link";

/// Arguments of the tools that read.
const SEARCH: &str = "search";
const LIMIT: &str = "limit";
const NAME: &str = "name";

/// Templates in a list.
const DEFAULT_LISTED: usize = 20;
const MAX_LISTED: usize = 100;
/// The texts about a page in a result.
const MAX_PROBLEMS: usize = 10;

pub(super) struct Tools {
    renderer: Renderer,
    templates: Option<SavedTemplates>,
    signer: Option<Signer>,
    /// The path without links, so that paths can be compared with it.
    directory: PathBuf,
    calls: TaskTracker,
}

impl Tools {
    pub(super) fn new(
        renderer: Renderer,
        templates: Option<SavedTemplates>,
        signer: Option<Signer>,
        directory: PathBuf,
    ) -> Self {
        Self { renderer, templates, signer, directory, calls: TaskTracker::new() }
    }

    /// Waits until calls have ended, and ends the browsers.
    pub(super) async fn close(&self) {
        self.calls.close();
        self.calls.wait().await;
        self.renderer.close().await;
    }

    fn list(&self) -> Vec<Tool> {
        let has_files = self.renderer.has_folders();
        let sources = match (has_files, self.has_templates()) {
            (true, true) => "`html`, `url`, `file` or the saved template `templateId`",
            (true, false) => "`html`, `url` or `file`",
            (false, true) => "`html`, `url` or the saved template `templateId`",
            (false, false) => "`html` or `url`",
        };
        let about = format!(
            "Renders one of {sources} to a PNG, JPEG, WebP or PDF file. With `{PATH}` the file is written, and the result is a \
             small picture of its first page; without it an image is the result, and a PDF an embedded resource. \
             `{DESCRIBE_OPTION}` describes an option in full."
        );
        let arguments = schema::arguments(has_files, self.has_templates());
        let mut tools = vec![Tool::new(RENDER, about, arguments)];
        let mut reads = |name, about: &'static str, properties: Value, required: &[&str]| {
            let Value::Object(properties) = properties else { unreachable!("it is an object") };
            let mut schema = schema::object(properties);
            schema.insert("required".to_owned(), required.into());
            let annotations = ToolAnnotations::new().read_only(true);
            tools.push(Tool::new(name, about, schema).with_annotations(annotations));
        };
        if self.has(LIST_TEMPLATES) {
            let properties = json!({
                SEARCH: { "type": "string", "description": "Words that a template's name has, or its id." },
                LIMIT: { "type": "integer", "minimum": 1, "maximum": MAX_LISTED, "default": DEFAULT_LISTED },
            });
            let about = "Lists saved templates, those saved last first. If it finds one only, with its options and, for one in \
                         Jinja, an example of `data`.";
            reads(LIST_TEMPLATES, about, properties, &[]);
        }
        if self.has(SIGN_LINK) {
            let properties = schema::link();
            reads(
                SIGN_LINK,
                "The signed URL of a file of a link, with these values.",
                properties,
                &[LINK, FILE_NAME],
            );
        }
        let properties =
            json!({ NAME: { "type": "string", "description": "Name of an option of `render`." } });
        reads(
            DESCRIBE_OPTION,
            "The JSON schema of an option with its whole description.",
            properties,
            &[NAME],
        );
        tools
    }

    fn has(&self, tool: &str) -> bool {
        match tool {
            RENDER | DESCRIBE_OPTION => true,
            LIST_TEMPLATES => self.templates.is_some(),
            SIGN_LINK => self.signer.is_some(),
            _ => false,
        }
    }

    /// Whether the renderer finds a template by its id.
    fn has_templates(&self) -> bool {
        matches!(self.renderer, Renderer::Server { .. }) || self.templates.is_some()
    }

    async fn call(&self, tool: &str, mut arguments: JsonObject) -> Result<Vec<ContentBlock>> {
        let text = |text: String| Ok(vec![ContentBlock::text(text)]);
        match tool {
            LIST_TEMPLATES => {
                let templates = self.templates.as_ref().context("there is no database")?;
                let search: Option<String> = argument(&mut arguments, SEARCH)?;
                let limit: Option<usize> = argument(&mut arguments, LIMIT)?;
                let limit = limit.unwrap_or(DEFAULT_LISTED);
                ensure!((1..=MAX_LISTED).contains(&limit), "\"{LIMIT}\" must be from 1 to {MAX_LISTED}");
                text(serde_json::to_string(&templates.list(&search.unwrap_or_default(), limit)?)?)
            }
            SIGN_LINK => {
                let signer = self.signer.as_ref().context("there is no secret of a link")?;
                let link: Option<String> = argument(&mut arguments, LINK)?;
                let name: Option<String> = argument(&mut arguments, FILE_NAME)?;
                let values: Option<BTreeMap<String, String>> = argument(&mut arguments, VALUES)?;
                let link = LinkId::parse(&link.unwrap_or_default())
                    .with_context(|| format!("\"{LINK}\" is no id of a link"))?;
                text(signer.sign(LinkFile::new(link, &name.unwrap_or_default(), values.unwrap_or_default())?))
            }
            DESCRIBE_OPTION => {
                let name: Option<String> = argument(&mut arguments, NAME)?;
                text(schema::option(&name.unwrap_or_default())?.to_string())
            }
            _ => self.render(arguments).await,
        }
    }

    async fn render(&self, mut arguments: JsonObject) -> Result<Vec<ContentBlock>> {
        schema::flatten(&mut arguments)?;
        let sources = [FieldName::Html, FieldName::Url, FieldName::TemplateId].map(FieldName::as_str);
        let given =
            [FILE].into_iter().chain(sources).filter(|source| arguments.contains_key(*source)).count();
        ensure!(
            given == 1,
            "one of \"html\", \"url\", \"file\" and \"templateId\" must be given, and no other"
        );
        let path: Option<PathBuf> = argument(&mut arguments, PATH)?;
        let path = path.map(|path| self.file(&path)).transpose()?;
        let folder = match argument::<PathBuf>(&mut arguments, FILE)? {
            Some(_) if !self.renderer.has_folders() => {
                bail!("\"{FILE}\" cannot be read, because a server renders")
            }
            Some(file) => Some(self.add_markup(&file, &mut arguments)?),
            None => None,
        };
        if let Some((_, format)) = &path {
            arguments.entry(FieldName::Format.as_str()).or_insert_with(|| format.extension().into());
        }
        let is_template = arguments.contains_key(FieldName::TemplateId.as_str());
        let endpoint = if is_template { Endpoint::Template } else { Endpoint::Render };
        let body = Value::Object(arguments).to_string().into_bytes();
        let rendered = self.renderer.render(endpoint, body, self.templates.as_ref(), folder).await?;
        let Rendered { bytes, page, problems, format } = rendered;
        let media_type = format.content_type();
        #[expect(clippy::cast_precision_loss, reason = "it is shown with one decimal place")]
        let mut text = format!("{media_type}, {:.1} KB", bytes.len() as f64 / 1000.0);
        match page.sheets {
            Some(1) => text += ", 1 page",
            Some(pages) => _ = write!(text, ", {pages} pages"),
            None => {}
        }
        if let Some(status) = page.status.filter(|status| *status >= 400) {
            let _ = write!(text, "; the page has status {status}");
        }
        for (count, name) in [(page.errors, "errors"), (page.failed_requests, "failed requests")] {
            if count > 0 {
                let _ = write!(text, "; {name} of the page: {count}");
            }
        }
        if !page.is_idle {
            text += "; a request of the page was still open";
        }
        for problem in problems.iter().take(MAX_PROBLEMS) {
            let _ = write!(text, "\n- {}", plain(problem));
        }
        if let Some((path, _)) = path {
            let cannot_write = || format!("{} cannot be written", path.display());
            fs::create_dir_all(path.parent().with_context(cannot_write)?).with_context(cannot_write)?;
            files::write(&path, &bytes)?;
            let picture = picture::of(&path, &bytes, format).await;
            let missing = picture.as_ref().err().map_or(String::new(), |why| format!("; no picture: {why}"));
            let text = ContentBlock::text(format!("wrote {}: {text}{missing}", path.display()));
            let picture =
                picture.map(|jpeg| ContentBlock::image(BASE64_STANDARD.encode(jpeg), picture::MEDIA_TYPE));
            return Ok([text].into_iter().chain(picture).collect());
        }
        let data = BASE64_STANDARD.encode(&bytes);
        let file = match format {
            OutputFormat::Image(_) => ContentBlock::image(data, media_type),
            OutputFormat::Pdf => ContentBlock::resource(
                ResourceContents::blob(data, "platen:render.pdf").with_mime_type(media_type),
            ),
        };
        Ok(vec![file, ContentBlock::text(text)])
    }

    /// Adds the markup of a file to the arguments. Returns its folder.
    fn add_markup(&self, path: &Path, arguments: &mut JsonObject) -> Result<Folder> {
        let html = FieldName::Html.as_str();
        let path = self.directory.join(path);
        let (parent, name) =
            path.parent().zip(path.file_name()).with_context(|| format!("\"{FILE}\" names no file"))?;
        let parent = parent.canonicalize();
        let parent = parent.with_context(|| format!("the directory of {} cannot be used", path.display()))?;
        let file = parent.join(name);
        let mut names = self.below(FILE, &file)?.iter();
        ensure!(!names.any(|name| name.as_encoded_bytes().starts_with(b".")), "\"{FILE}\" is hidden");
        let cannot_read = || format!("{} cannot be read", file.display());
        let folder = Folder::open(&parent, Some(&file)).with_context(cannot_read)?;
        let markup = folder.read_page().with_context(cannot_read)?;
        let markup =
            String::from_utf8(markup).with_context(|| format!("{} is not UTF-8 text", file.display()))?;
        arguments.insert(html.to_owned(), markup.into());
        Ok(folder)
    }

    /// The path of a file in the directory. `argument` has named the file, whose path is without links.
    fn below<'p>(&self, argument: &str, file: &'p Path) -> Result<&'p Path> {
        ensure!(
            self.directory.parent().is_some(),
            "files cannot be read or written: this server has no directory for them (--directory)"
        );
        file.strip_prefix(&self.directory).ok().with_context(|| {
            let directory = self.directory.display();
            format!("\"{argument}\" must be below {directory}, the directory of this server (--directory)")
        })
    }

    /// The file of a path, without links, and the format of its name.
    fn file(&self, path: &Path) -> Result<(PathBuf, OutputFormat)> {
        let format = files::format(path)
            .with_context(|| format!("\"{PATH}\" must end in .png, .jpg, .jpeg, .webp or .pdf"))?;
        let path = self.directory.join(path);
        let file = if let Ok(file) = path.canonicalize() {
            file
        } else {
            // It does not exist, or is a link to nothing, which is replaced itself.
            let (parent, name) = path.parent().zip(path.file_name()).context("it has a name")?;
            resolved(parent)
                .with_context(|| format!("the directory of {} cannot be used", path.display()))?
                .join(name)
        };
        self.below(PATH, &file)?;
        Ok((file, format))
    }
}

/// The path of a folder without links, of which the last folders may not exist.
fn resolved(folder: &Path) -> io::Result<PathBuf> {
    match folder.canonicalize() {
        // A link to nothing is there.
        Err(error) if error.kind() == io::ErrorKind::NotFound && folder.symlink_metadata().is_err() => {
            let (parent, name) = folder.parent().zip(folder.file_name()).ok_or(error)?;
            Ok(resolved(parent)?.join(name))
        }
        other => other,
    }
}

/// Takes an argument away. Its type is that of the schema.
fn argument<T: DeserializeOwned>(arguments: &mut JsonObject, name: &str) -> Result<Option<T>> {
    let value = arguments.shift_remove(name).map(serde_json::from_value);
    value.transpose().with_context(|| format!("\"{name}\" has the wrong type"))
}

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("platen", env!("CARGO_PKG_VERSION")))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.list()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if !self.has(&request.name) {
            return Err(ErrorData::invalid_params(format!("there is no tool {:?}", request.name), None));
        }
        let call = self.call(&request.name, request.arguments.unwrap_or_default());
        let result = self.calls.track_future(context.ct.run_until_cancelled(call)).await;
        let result = match result.unwrap_or_else(|| Err(anyhow!("the call was cancelled"))) {
            Ok(blocks) => CallToolResult::success(blocks),
            Err(error) => CallToolResult::error(vec![ContentBlock::text(format!("{error:#}"))]),
        };
        Ok(result.into())
    }
}
