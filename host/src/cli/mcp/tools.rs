//! The tools: what they are, and their calls.
//!
//! Invariant: a file is read or written only below the directory of the command. An error that a model can act on is the result
//! of a call, not an error of the protocol, which models do not see.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result, anyhow, ensure};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use platen_farm::{Folder, Rendered};
use platen_shared::{endpoint::Endpoint, format::OutputFormat, request::FieldName};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject,
        ListToolsResult, PaginatedRequestParams, ResourceContents, ServerCapabilities, ServerConfig, Tool,
        ToolAnnotations,
    },
    service::RequestContext,
};
use serde_json::{Map, Value, json};
use tokio_util::task::TaskTracker;

use super::{
    renderer::{Renderer, SavedTemplates},
    schema::{self, FILE, PATH},
};
use crate::cli::render::{files, folder::plain};

const RENDER_HTML: &str = "render_html";
const RENDER_URL: &str = "render_url";
const RENDER_TEMPLATE: &str = "render_template";
const LIST_TEMPLATES: &str = "list_templates";
const DESCRIBE_OPTIONS: &str = "describe_options";

/// The texts about a page in a result.
const MAX_PROBLEMS: usize = 10;

pub(super) struct Tools {
    renderer: Renderer,
    templates: Option<SavedTemplates>,
    /// The path without links, so that paths can be compared with it.
    directory: PathBuf,
    calls: TaskTracker,
}

impl Tools {
    pub(super) fn new(renderer: Renderer, templates: Option<SavedTemplates>, directory: PathBuf) -> Self {
        Self { renderer, templates, directory, calls: TaskTracker::new() }
    }

    /// Waits until calls have ended, and ends the browsers.
    pub(super) async fn close(&self) {
        self.calls.close();
        self.calls.wait().await;
        self.renderer.close().await;
    }

    fn list(&self) -> Vec<Tool> {
        let renders = |name, about: &str, endpoint, source| {
            let description = format!(
                "{about} to a PNG, JPEG, WebP or PDF file. With `{PATH}` the file is written; without it an image is \
                 the result, and a PDF an embedded resource. `{DESCRIBE_OPTIONS}` has the whole descriptions of the options."
            );
            Tool::new(name, description, schema::arguments(endpoint, source))
        };
        let has_files = self.renderer.has_folders();
        let about = if has_files { "Renders markup, or a file that has it," } else { "Renders markup" };
        let mut html = renders(RENDER_HTML, about, Endpoint::Render, FieldName::Html);
        if has_files {
            schema::add_file(Arc::make_mut(&mut html.input_schema));
        }
        let mut tools =
            vec![html, renders(RENDER_URL, "Renders a public web page", Endpoint::Render, FieldName::Url)];
        if self.has(RENDER_TEMPLATE) {
            let about =
                "Renders a saved template, with `variables` for its placeholders or `data` for one in Jinja,";
            tools.push(renders(RENDER_TEMPLATE, about, Endpoint::Template, FieldName::TemplateId));
        }
        let reads = |name, about: &'static str| {
            let none = Map::from_iter([("type".to_owned(), json!("object"))]);
            Tool::new(name, about, none).with_annotations(ToolAnnotations::new().read_only(true))
        };
        if self.has(LIST_TEMPLATES) {
            tools.push(reads(
                LIST_TEMPLATES,
                "Lists saved templates with their language, placeholders and options, and for those in Jinja an example of `data`.",
            ));
        }
        tools.push(reads(
            DESCRIBE_OPTIONS,
            "The JSON schema of the options of all tools that render, with descriptions and defaults.",
        ));
        tools
    }

    fn has(&self, tool: &str) -> bool {
        match tool {
            RENDER_HTML | RENDER_URL | DESCRIBE_OPTIONS => true,
            RENDER_TEMPLATE => matches!(self.renderer, Renderer::Server { .. }) || self.templates.is_some(),
            LIST_TEMPLATES => self.templates.is_some(),
            _ => false,
        }
    }

    async fn call(&self, tool: &str, arguments: JsonObject) -> Result<Vec<ContentBlock>> {
        let text = |text: String| Ok(vec![ContentBlock::text(text)]);
        match tool {
            RENDER_HTML if self.renderer.has_folders() && arguments.contains_key(FILE) => {
                let (arguments, folder) = self.with_markup(arguments)?;
                self.render(Endpoint::Render, arguments, Some(folder)).await
            }
            RENDER_TEMPLATE => self.render(Endpoint::Template, arguments, None).await,
            LIST_TEMPLATES => {
                let templates = self.templates.as_ref().context("there is no database")?;
                text(serde_json::to_string(&templates.list()?)?)
            }
            DESCRIBE_OPTIONS => text(Value::Object(schema::options()).to_string()),
            _ => self.render(Endpoint::Render, arguments, None).await,
        }
    }

    async fn render(
        &self,
        endpoint: Endpoint,
        mut arguments: JsonObject,
        folder: Option<Folder>,
    ) -> Result<Vec<ContentBlock>> {
        let path = match arguments.shift_remove(PATH) {
            None => None,
            Some(Value::String(path)) => Some(self.file(Path::new(&path))?),
            Some(_) => return Err(anyhow!("\"{PATH}\" must be a string")),
        };
        if let Some((_, format)) = &path {
            arguments.entry(FieldName::Format.as_str()).or_insert_with(|| format.extension().into());
        }
        let body = Value::Object(arguments).to_string().into_bytes();
        let rendered = self.renderer.render(endpoint, body, self.templates.as_ref(), folder).await?;
        let Rendered { bytes, page, problems, format } = rendered;
        let media_type = format.content_type();
        #[expect(clippy::cast_precision_loss, reason = "it is shown with one decimal place")]
        let mut text = format!("{media_type}, {:.1} KB", bytes.len() as f64 / 1000.0);
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
            files::write(&path, &bytes)?;
            return Ok(vec![ContentBlock::text(format!("wrote {}: {text}", path.display()))]);
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

    /// The arguments with the markup of the file that they name, and its folder.
    fn with_markup(&self, mut arguments: JsonObject) -> Result<(JsonObject, Folder)> {
        let Some(Value::String(path)) = arguments.shift_remove(FILE) else {
            return Err(anyhow!("\"{FILE}\" must be a string"));
        };
        let html = FieldName::Html.as_str();
        ensure!(!arguments.contains_key(html), "\"{FILE}\" and \"{html}\" exclude each other");
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
        Ok((arguments, folder))
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
            let parent = parent.canonicalize();
            parent.with_context(|| format!("the directory of {} cannot be used", path.display()))?.join(name)
        };
        self.below(PATH, &file)?;
        Ok((file, format))
    }
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
