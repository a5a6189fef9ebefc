//! The playground: requests are made here, and sent by the browser.

use platen_shared::{id::TemplateId, request::FieldName};
use platen_statements::templates::TemplateContent;
use serde_json::json;

use crate::{
    form::Form,
    pages::{
        Section,
        keys::RENDER_KEY_SECONDS,
        playground::{Panel, PlaygroundPage, sources},
        templates::{TemplatePanel, with_samples},
    },
    playground::{
        Source,
        body::{Problem, Request},
        snippets,
    },
    router::{
        context::Context,
        page_error::{PageError, PageResult},
        response::PageResponse,
    },
    starter::Starter,
};

/// Templates that the field of the template's ID suggests.
const MAX_SUGGESTED: u64 = 200;

const INITIAL_HTML: &str = "<!doctype html>\n<meta charset=\"utf-8\">\n<style>\n  body { font: 16px/1.5 sans-serif; margin: 3rem; }\n  h1 { color: #2743d2; }\n</style>\n<h1>Hello</h1>\n<p>This is the page that is rendered.</p>\n";

/// The playground, with the template that the query names.
pub(crate) async fn page(context: &Context<'_>) -> PageResult {
    let mut form = Form::default();
    form.set(FieldName::Html.as_str(), INITIAL_HTML);
    if let Some(id) = context.head.query.get("template") {
        let template = context.account()?.template_content(id).await?.ok_or(PageError::NotFound)?;
        form.set(Source::FIELD, Source::Template.name());
        form.set(FieldName::TemplateId.as_str(), id);
        form.set(FieldName::Variables.as_str(), variables(&template));
    }
    show(context, &form).await
}

/// The playground with what was entered, and the request that it makes.
pub(crate) async fn show(context: &Context<'_>, form: &Form) -> PageResult {
    let account = context.account()?;
    let request = Request::of(form);
    let problem = request.as_ref().err();
    let user = context.current_user()?.user.clone();
    let templates = account.template_names(MAX_SUGGESTED, 0).await?;
    let panel = Panel::of(&context.head.base_url(), form, request.as_ref())?;
    let status = if problem.is_some() { 422 } else { 200 };
    let response = context.page_with_editor(|style_nonce| PlaygroundPage {
        layout: context.layout("Playground", Section::Playground),
        style_nonce,
        user,
        source: Source::of(form),
        sources: sources(form, problem),
        templates,
        panel,
    })?;
    Ok(response.with_status(status).with_result_frame())
}

/// The sample values of a template, as a JSON object.
pub(crate) async fn samples(context: &Context<'_>, id: &str) -> PageResult {
    let template = context.account()?.template_content(id).await?.ok_or(PageError::NotFound)?;
    Ok(PageResponse::json(&json!({ "variables": variables(&template) })))
}

/// The sample values of a template's placeholders as JSON.
pub(crate) fn variables(template: &TemplateContent) -> String {
    let samples = with_samples(&template.html, &template.samples);
    let object: serde_json::Map<_, _> =
        samples.into_iter().map(|(name, value)| (name, value.into())).collect();
    serde_json::to_string_pretty(&object).unwrap_or_default()
}

/// The panel of a saved template, with its sample values.
pub(crate) fn panel_of(context: &Context<'_>, template: &TemplateContent) -> askama::Result<TemplatePanel> {
    let starter = context.head.query.get(Starter::FIELD).and_then(Starter::find);
    let mut form = starter.map(Starter::options).unwrap_or_default();
    let variables = variables(template);
    form.set(Source::FIELD, Source::Template.name());
    form.set(FieldName::TemplateId.as_str(), template.template.id.as_str());
    form.set(FieldName::Variables.as_str(), &*variables);
    let request = Request::of(&form);
    let panel = Panel::of(&context.head.base_url(), &form, request.as_ref())?;
    Ok(TemplatePanel { panel, variables })
}

/// The body of the request as a file.
pub(crate) async fn download(context: &Context<'_>, form: &Form) -> PageResult {
    context.account()?;
    match Request::of(form) {
        Ok(request) => {
            Ok(PageResponse::download("application/json", snippets::FILE_NAME, request.body.into_bytes()))
        }
        Err(_) => show(context, form).await,
    }
}

/// The request of a form for the script: its body, and the programs that send it.
pub(crate) fn request(context: &Context<'_>, form: &Form) -> PageResult {
    context.account()?;
    Ok(Request::of(form).map_or_else(
        |problem| Ok(of_problem(&problem)),
        |request| as_json(context, &request).map(|json| PageResponse::json(&json)),
    )?)
}

/// The request of a form with a key that is valid for a short time, for the script to send it.
pub(crate) async fn render(context: &Context<'_>, form: &Form) -> PageResult {
    let account = context.account()?;
    let request = match Request::of(form) {
        Ok(request) => request,
        Err(problem) => return Ok(of_problem(&problem)),
    };
    let template = request.template.as_deref().map(TemplateId::from_text);
    let Some(key) = account.create_render_key(template.as_ref(), RENDER_KEY_SECONDS).await? else {
        let message = "The account has no template with this ID.".to_owned();
        return Ok(of_problem(&Problem { field: FieldName::TemplateId.to_string(), message }));
    };
    let mut json = as_json(context, &request)?;
    json["key"] = key.expose().into();
    Ok(PageResponse::json(&json))
}

fn as_json(context: &Context<'_>, request: &Request) -> askama::Result<serde_json::Value> {
    let snippets = snippets::all(&context.head.base_url(), request)?
        .into_iter()
        .map(|snippet| (snippet.id.to_owned(), snippet.program.into()));
    Ok(json!({
        "path": request.endpoint.path(),
        "body": request.body,
        "extension": request.extension,
        "readsFile": snippets::read_a_file(request),
        "snippets": snippets.collect::<serde_json::Map<_, _>>(),
    }))
}

fn of_problem(problem: &Problem) -> PageResponse {
    PageResponse::json(&json!({ "field": problem.field, "error": problem.message })).with_status(422)
}
