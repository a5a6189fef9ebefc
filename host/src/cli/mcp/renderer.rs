//! What renders for the tools: a server over HTTP, or a farm in this process.

use std::{cmp::Reverse, fmt, num::NonZeroUsize, time::Duration};

use anyhow::{Context as _, Result, anyhow};
use platen_farm::{Farm, Folder, Rendered};
use platen_program::http_client;
use platen_shared::{
    endpoint::Endpoint,
    format::OutputFormat,
    id::{AccountId, TemplateId},
    job::RenderJob,
    key::ApiKey,
    limits,
    page_report::PageReport,
    reason::Reason,
    refusal::Refusal,
    request::{InvalidRequest, RenderRequest, SavedTemplate, Subject, TemplateOptions},
    template::Language,
};
use platen_statements::templates::{Template, TemplateContent};
use reqwest::{Client, RequestBuilder, header::CONTENT_TYPE, redirect::Policy};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::{runtime::Handle, sync::OnceCell, task::block_in_place};
use url::Url;

use crate::admin::Admin;

/// The time for a response after the server's deadline, and its body.
const RESPONSE_TIMEOUT: Duration = Duration::from_millis(2 * limits::RENDER_TIMEOUT_MS);

/// An error of the API. `Display` is its message with code and field.
#[derive(Debug, Deserialize, thiserror::Error)]
struct ApiError {
    error: String,
    code: Option<String>,
    field: Option<String>,
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error)?;
        match (&self.code, &self.field) {
            (None, _) => Ok(()),
            (Some(code), None) => write!(f, " (code {code})"),
            (Some(code), Some(field)) => write!(f, " (code {code}, field {field})"),
        }
    }
}

impl ApiError {
    fn new(error: &impl ToString, reason: Reason, field: Option<String>) -> Self {
        let code = reason.error_code().map(|code| code.as_str().to_owned());
        Self { error: error.to_string(), code, field }
    }

    fn of_job(refusal: &Refusal, job: &RenderJob) -> Self {
        Self::new(refusal, refusal.reason(), refusal.field(job).map(str::to_owned))
    }
}

impl From<InvalidRequest> for ApiError {
    fn from(error: InvalidRequest) -> Self {
        Self::new(&error, error.reason(), error.field())
    }
}

/// Templates that a search has found.
#[derive(Serialize)]
pub(super) struct FoundTemplates {
    templates: Vec<ListedTemplate>,
    /// The number of all that were found.
    found: usize,
}

#[derive(Serialize)]
struct ListedTemplate {
    id: TemplateId,
    name: String,
    account: String,
    language: Language,
    placeholders: Vec<String>,
    /// Details of the only one that was found.
    #[serde(flatten)]
    details: Option<Details>,
}

#[derive(Serialize)]
struct Details {
    options: TemplateOptions,
    /// The sample values of a template in Jinja.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Box<RawValue>>,
}

pub(super) struct SavedTemplates {
    pub(super) admin: Admin,
    /// Only those of this account.
    pub(super) account: Option<AccountId>,
}

impl SavedTemplates {
    /// The templates whose names have all words of `search`, or whose id it is, at most `limit`, those saved last first.
    pub(super) fn list(&self, search: &str, limit: usize) -> Result<FoundTemplates> {
        let words: Vec<String> = search.split_whitespace().map(str::to_lowercase).collect();
        let operator = self.admin.operator();
        wait(async {
            let mut templates = operator.templates(self.account.as_ref()).await?;
            templates.retain(|template| {
                let name = template.name.to_lowercase();
                template.id.as_str() == search.trim() || words.iter().all(|word| name.contains(word))
            });
            // Of one second, the newest first.
            templates.reverse();
            templates.sort_by_key(|template| Reverse(template.updated_at));
            let found = templates.len();
            let mut listed = Vec::new();
            for template in templates.into_iter().take(limit) {
                let mut details = None;
                if found == 1 {
                    let scope = operator.account_scope(&template.account);
                    let content = scope.template_content(template.id.as_str()).await?;
                    let samples = content.filter(|_| template.language == Language::Jinja);
                    let data = samples.and_then(|content| RawValue::from_string(content.samples).ok());
                    details = Some(Details { options: template.options, data });
                }
                let Template { id, name, account_name: account, language, placeholders, .. } = template;
                listed.push(ListedTemplate { id, name, account, language, placeholders, details });
            }
            Ok(FoundTemplates { templates: listed, found })
        })
    }

    fn content(&self, id: &str) -> Result<Option<TemplateContent>> {
        let operator = self.admin.operator();
        wait(async {
            let Some(account) = operator.owner_of_template(id).await? else { return Ok(None) };
            operator.account_scope(&account).template_content(id).await
        })
    }

    /// Adds the files of a template to its job.
    fn add_files(&self, job: &mut RenderJob, template: &Template) -> Result<()> {
        job.add_template_files(template.files.assets());
        let hashes: Vec<_> = job.template_files().map(|(hash, _)| hash.clone()).collect();
        let operator = self.admin.operator();
        let contents = wait(operator.account_scope(&job.account).template_file_contents(&hashes))?;
        Ok(job.set_contents(&contents)?)
    }
}

/// Waits for statements, whose futures are not `Send`, as those of calls must be.
fn wait<T>(statements: impl Future<Output = T>) -> T {
    block_in_place(|| Handle::current().block_on(statements))
}

pub(super) enum Renderer {
    Server {
        http: Client,
        url: String,
        key: ApiKey,
    },
    /// A farm that is started for the first page.
    Local {
        config: Box<platen_farm::Config>,
        farm: OnceCell<Farm>,
    },
}

impl Renderer {
    pub(super) fn server(url: &Url, key: ApiKey) -> Result<Self> {
        let http = http_client().redirect(Policy::none()).timeout(RESPONSE_TIMEOUT).build()?;
        Ok(Self::Server { http, url: url.as_str().trim_end_matches('/').to_owned(), key })
    }

    pub(super) fn local(mut config: platen_farm::Config) -> Self {
        // One user needs one browser.
        config.browsers = config.browsers.or(Some(NonZeroUsize::MIN));
        Self::Local { config: Box::new(config), farm: OnceCell::new() }
    }

    /// Whether a page can have the files of a folder, which are not sent to a server.
    pub(super) fn has_folders(&self) -> bool {
        matches!(self, Self::Local { .. })
    }

    /// Renders the body of a request. Without a server, a template is one of `templates`, and markup without an address has the
    /// files of `folder`.
    ///
    /// # Errors
    /// [`ApiError`] for a refusal.
    pub(super) async fn render(
        &self,
        endpoint: Endpoint,
        body: Vec<u8>,
        templates: Option<&SavedTemplates>,
        folder: Option<Folder>,
    ) -> Result<Rendered> {
        match self {
            Self::Server { http, url, key } => {
                let request = http.post(format!("{url}{}", endpoint.path())).bearer_auth(key.expose());
                rendered(request.header(CONTENT_TYPE, "application/json").body(body)).await
            }
            Self::Local { config, farm } => {
                let job = job(endpoint, &body, templates)?;
                let farm = farm.get_or_try_init(|| Farm::start(config.as_ref().clone())).await?;
                let time_left = Duration::from_millis(limits::RENDER_TIMEOUT_MS);
                let rendered = match folder.filter(|_| !job.has_address()) {
                    Some(folder) => Box::pin(farm.render_in_folder(job.clone(), &folder, time_left)).await,
                    None => Box::pin(farm.render(&job, time_left)).await,
                };
                Ok(rendered.map_err(|refusal| ApiError::of_job(&refusal, &job))?)
            }
        }
    }

    pub(super) async fn close(&self) {
        if let Self::Local { farm, .. } = self
            && let Some(farm) = farm.get()
        {
            farm.shutdown().await;
        }
    }
}

async fn rendered(request: RequestBuilder) -> Result<Rendered> {
    let response = request.send().await.map_err(reqwest::Error::without_url);
    let response = response.context("the server of PLATEN_URL cannot be reached")?;
    let (status, headers) = (response.status(), response.headers().clone());
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bytes = response.bytes().await.map_err(reqwest::Error::without_url);
    let bytes = bytes.context("the file is not complete")?;
    let not_platen =
        || anyhow!("PLATEN_URL answered with status {status}, which is no answer of Platen's API");
    if !status.is_success() {
        return Err(serde_json::from_slice::<ApiError>(&bytes).map_or_else(|_| not_platen(), Into::into));
    }
    let formats = OutputFormat::NAMES.iter().filter_map(|name| name.parse::<OutputFormat>().ok());
    let mut formats = formats.filter(|format| header(CONTENT_TYPE.as_str()) == Some(format.content_type()));
    Ok(Rendered {
        bytes,
        page: PageReport::of_headers(|name| header(name).map(str::to_owned)),
        problems: Vec::new(),
        format: formats.next().ok_or_else(not_platen)?,
    })
}

/// The job of a request for the farm of this process.
fn job(endpoint: Endpoint, body: &[u8], templates: Option<&SavedTemplates>) -> Result<RenderJob> {
    let request = RenderRequest::parse(endpoint, body).map_err(ApiError::from)?;
    let job = match &request.subject {
        Subject::Template { id, .. } => {
            let not_found = || {
                let field = Some("templateId".to_owned());
                ApiError::new(&"Template not found", Reason::TemplateNotFound, field)
            };
            let templates = templates.ok_or_else(not_found)?;
            let content = templates.content(id.as_str())?;
            let TemplateContent { template, html, .. } = content.ok_or_else(not_found)?;
            let saved =
                SavedTemplate { html: &html, language: template.language, options: &template.options };
            let mut job = request.into_job(template.account.clone(), Some(saved)).map_err(ApiError::from)?;
            templates.add_files(&mut job, &template)?;
            return Ok(job);
        }
        Subject::Source(_) => request.into_job(AccountId::from_text("operator"), None),
    };
    Ok(job.map_err(ApiError::from)?)
}
