//! The playground: requests are made here, and sent by the browser.

use std::collections::BTreeSet;

use platen_shared::{
    format::OutputFormat, id::TemplateId, reason::ErrorCode, request::FieldName, template::Language,
};
use platen_statements::templates::{Template, TemplateContent};
use serde_json::json;

use crate::{
    form::Form,
    pages::{
        Section,
        keys::RENDER_KEY_SECONDS,
        playground::{Panel, PlaygroundPage, sources},
        templates::TemplatePanel,
    },
    playground::{
        Source,
        body::{Problem, Request, template_id, template_text},
        snippets, text,
    },
    router::{
        context::Context,
        page_error::{PageError, PageResult},
        response::PageResponse,
    },
};

/// Templates that the field of the template suggests.
const MAX_SUGGESTED: u64 = 1_000;
/// Templates of one name whose ids a message has.
const MAX_NAMED: usize = 5;

const INITIAL_HTML: &str = "<!doctype html>\n<meta charset=\"utf-8\">\n<style>\n  body { font: 16px/1.5 sans-serif; margin: 3rem; }\n  h1 { color: #2743d2; }\n</style>\n<h1>Hello</h1>\n<p>This is the page that is rendered.</p>\n";

/// What the first steps of an account lead to.
const INVOICE: &str = include_str!("../../../../examples/invoice.html");

/// The playground, with the example, the template, the URL and the format that the query names.
pub(crate) async fn page(context: &Context<'_>) -> PageResult {
    let query = &context.head.query;
    let mut form = Form::default();
    form.set(FieldName::Html.as_str(), INITIAL_HTML);
    if query.get("example") == Some("invoice") {
        form.set(FieldName::Html.as_str(), INVOICE);
        form.set(FieldName::PrintBackground.as_str(), "true");
    }
    let mut of_template = None;
    if let Some(url) = query.get(FieldName::Url.as_str()) {
        form.set(Source::FIELD, Source::Url.name());
        form.set(FieldName::Url.as_str(), url);
    }
    if let Some(id) = query.get("template") {
        let template = context.account()?.template_content(id).await?.ok_or(PageError::NotFound)?;
        form.set(Source::FIELD, Source::Template.name());
        form.set(
            FieldName::TemplateId.as_str(),
            template_text(&template.template.name, &template.template.id),
        );
        let (field, values) = samples(&template);
        form.set(field.as_str(), values);
        of_template = template.template.options.format();
    }
    let format = query.get(FieldName::Format.as_str()).unwrap_or_default();
    if format.parse::<OutputFormat>().is_ok_and(|format| Some(format) != of_template) {
        form.set(FieldName::Format.as_str(), format);
    }
    show(context, &form).await
}

/// The playground with what was entered, and the request that it makes.
pub(crate) async fn show(context: &Context<'_>, form: &Form) -> PageResult {
    let account = context.account()?;
    let request = request_of(context, form).await?;
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
        has_preview: context.has_preview(),
        panel,
    })?;
    Ok(response.with_status(status).with_result_frame())
}

/// The template that the query names, for the script: its markup, its options as values of controls, and its sample values
/// as a JSON object.
pub(crate) async fn template(context: &Context<'_>) -> PageResult {
    let account = context.account()?;
    let found = find_template(context, context.head.query.get("id").unwrap_or_default()).await?;
    let id = found.map_err(|_| PageError::NotFound)?.id;
    let template = account.template_content(id.as_str()).await?.ok_or(PageError::NotFound)?;
    let mut json = json!({
        "html": template.html,
        "language": template.template.language.name(),
        "options": text::texts_of_options(&template.template.options),
        "files": template.template.files,
    });
    let (field, values) = samples(&template);
    json[field.as_str()] = values.into();
    Ok(PageResponse::json(&json))
}

/// The template that a text names: an id, a text of the list, or a name that only one template has. An error is a message
/// for the user.
async fn find_template(context: &Context<'_>, text: &str) -> Result<Result<Template, String>, PageError> {
    let account = context.account()?;
    let text = text.trim();
    if let Some(template) = account.template(template_id(text)).await? {
        return Ok(Ok(template));
    }
    let mut named = account.template_names(u32::MAX.into(), 0).await?;
    named.retain(|(_, name)| name == text);
    let ids: Vec<&str> = named.iter().map(|(id, _)| id.as_str()).collect();
    Ok(match ids[..] {
        [] if text.is_empty() => Err("Choose a template.".to_owned()),
        [] => Err("The account has no template with this name or ID.".to_owned()),
        [id] => Ok(account.template(id).await?.ok_or(PageError::NotFound)?),
        _ => {
            let some = ids[..ids.len().min(MAX_NAMED)].join(" or ");
            Err(format!("{} templates have this name. Enter an ID in place of it: {some}.", ids.len()))
        }
    })
}

/// The field with a template's sample values, and these as JSON.
fn samples(template: &TemplateContent) -> (FieldName, String) {
    if template.template.language == Language::Jinja {
        return (FieldName::Data, template.samples.clone());
    }
    let samples = template.sample_texts();
    let value = |name: &String| samples.get(name).cloned().unwrap_or_default().into();
    let names = template.template.placeholders.iter();
    let object: serde_json::Map<_, _> = names.map(|name| (name.clone(), value(name))).collect();
    (FieldName::Variables, serde_json::to_string_pretty(&object).unwrap_or_default())
}

/// The panel of a saved template, with its sample values.
pub(crate) fn panel_of(context: &Context<'_>, template: &TemplateContent) -> askama::Result<TemplatePanel> {
    let mut form = Form::default();
    let (field, values) = samples(template);
    form.set(Source::FIELD, Source::Template.name());
    form.set(FieldName::TemplateId.as_str(), template.template.id.as_str());
    form.set(field.as_str(), &*values);
    let request = Request::of(&form).map(|request| with_format_of(request, &template.template));
    let panel = Panel::of(&context.head.base_url(), &form, request.as_ref())?;
    Ok(TemplatePanel { panel, values: (field, values) })
}

/// The body of the request as a file.
pub(crate) async fn download(context: &Context<'_>, form: &Form) -> PageResult {
    match request_of(context, form).await? {
        Ok(request) => {
            Ok(PageResponse::download("application/json", snippets::FILE_NAME, request.shown.into_bytes()))
        }
        Err(_) => show(context, form).await,
    }
}

/// The request of a form for the script: its body, and the programs that send it.
pub(crate) async fn request(context: &Context<'_>, form: &Form) -> PageResult {
    Ok(request_of(context, form).await?.map_or_else(
        |problem| Ok(of_problem(&problem)),
        |request| as_json(context, &request).map(|json| PageResponse::json(&json)),
    )?)
}

/// The request of a form with a key that is valid for a short time, for the script to send it.
pub(crate) async fn render(context: &Context<'_>, form: &Form) -> PageResult {
    let account = context.account()?;
    let request = match request_of(context, form).await? {
        Ok(request) => request,
        Err(problem) => return Ok(of_problem(&problem)),
    };
    let template = request.template.as_deref().map(TemplateId::from_text);
    let key = account.create_render_key(template.as_ref(), RENDER_KEY_SECONDS).await?;
    let key = key.ok_or(PageError::NotFound)?;
    let mut json = as_json(context, &request)?;
    json["key"] = key.expose().into();
    // The statuses of failures that count as an attempt.
    let counted = ErrorCode::ALL.iter().filter(|code| code.is_counted()).map(|code| code.status());
    json["counted"] = counted.collect::<BTreeSet<_>>().into_iter().collect();
    Ok(PageResponse::json(&json))
}

/// The request of a form. A template is named by what [`find_template`] knows, and gives the format if the form has none.
async fn request_of(context: &Context<'_>, form: &Form) -> Result<Result<Request, Problem>, PageError> {
    context.account()?;
    if Source::of(form) != Source::Template {
        return Ok(Request::of(form));
    }
    let field = FieldName::TemplateId.as_str();
    Ok(match find_template(context, &form.text(field)).await? {
        Ok(template) => {
            let mut form = form.clone();
            form.set(field, template.id.as_str());
            Request::of(&form).map(|request| with_format_of(request, &template))
        }
        Err(message) => Err(Problem { field: field.to_owned(), message }),
    })
}

fn with_format_of(request: Request, template: &Template) -> Request {
    Request { format: request.format.or(template.options.format()), ..request }
}

fn as_json(context: &Context<'_>, request: &Request) -> askama::Result<serde_json::Value> {
    let snippets = snippets::all(&context.head.base_url(), request)?
        .into_iter()
        .map(|snippet| (snippet.id.to_owned(), snippet.program.into()));
    Ok(json!({
        "path": request.endpoint.path(),
        "body": request.body,
        "extension": request.extension(),
        "readsFile": snippets::read_a_file(request),
        "snippets": snippets.collect::<serde_json::Map<_, _>>(),
    }))
}

fn of_problem(problem: &Problem) -> PageResponse {
    PageResponse::json(&json!({ "field": problem.field, "error": problem.message })).with_status(422)
}
