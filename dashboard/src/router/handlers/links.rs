//! Links of templates.
//!
//! Invariant: only owners of the account get addresses that are signed with a stored secret, because they are who may roll it.

use platen_shared::{
    endpoint::Endpoint,
    job::{ImageOptions, Output, Region, rounded_pixels},
    link::LinkFile,
    request::{RenderRequest, SavedTemplate},
    template::Language,
};
use platen_statements::{links::Link, templates::TemplateContent};
use serde_json::{Value, json};

use super::templates;
use crate::{
    chart::{self, Chart, DAYS_SHOWN},
    cookies::Once,
    form::{Field, Form},
    link_programs,
    pages::{
        ConfirmPage, Section,
        keys::grace_seconds,
        links::{FileAddress, FileForm, LinkForm, LinkPage, LinksPage, stem_of},
    },
    router::{
        context::{Context, redirect_if_found, redirect_with_notice},
        page_error::{PageError, PageResult},
    },
};

/// The form fields of values begin with it.
const VALUE_PREFIX: &str = "value.";

fn list_path(template: &str) -> String {
    format!("{}/{template}/links", templates::PATH)
}

fn path(link: &str) -> String {
    format!("/dashboard/links/{link}")
}

async fn find(context: &Context<'_>, id: &str) -> Result<Link, PageError> {
    context.account()?.link(id).await?.ok_or(PageError::NotFound)
}

/// The links of a template.
pub(crate) async fn list(context: &Context<'_>, template: &str) -> PageResult {
    show_list(context, template, LinkForm::of_new()).await
}

/// The list with what was entered into its form.
pub(crate) async fn resume(context: &Context<'_>, template: &str, form: &Form) -> PageResult {
    show_list(context, template, LinkForm::read(form).0).await
}

async fn show_list(context: &Context<'_>, template: &str, form: LinkForm) -> PageResult {
    let account = context.account()?;
    let template = account.template(template).await?.ok_or(PageError::NotFound)?;
    let links = account.links(Some(template.id.as_str())).await?;
    context.page(&LinksPage { layout: context.layout("Links", Section::Templates), template, links, form })
}

pub(crate) async fn create(context: &Context<'_>, template: &str, form: &Form) -> PageResult {
    let account = context.account()?;
    let (fields, settings) = LinkForm::read(form);
    let Some((name, settings)) = settings else {
        return Ok(show_list(context, template, fields).await?.with_status(422));
    };
    let template = account.template(template).await?.ok_or(PageError::NotFound)?.id;
    let (id, secret) = account.create_link(&template, &name, &settings).await?.ok_or(PageError::NotFound)?;
    Ok(context.redirect_once(&path(id.as_str()), format!("{id}~{}", secret.expose())))
}

pub(crate) async fn page(context: &Context<'_>, id: &str) -> PageResult {
    show(context, id, None, None).await
}

/// The page with the address of a file.
pub(crate) async fn sign(context: &Context<'_>, id: &str, form: &Form) -> PageResult {
    show(context, id, Some(form), None).await
}

/// The page with what was entered into the form of its settings.
pub(crate) async fn resume_settings(context: &Context<'_>, id: &str, form: &Form) -> PageResult {
    show(context, id, None, Some(LinkForm::read(form).0)).await
}

pub(crate) async fn change(context: &Context<'_>, id: &str, form: &Form) -> PageResult {
    let account = context.owner()?;
    let (fields, settings) = LinkForm::read(form);
    let Some((name, settings)) = settings else {
        return Ok(show(context, id, None, Some(fields)).await?.with_status(422));
    };
    redirect_if_found(account.change_link(id, &name, &settings).await?, &path(id), "link-changed")
}

pub(crate) async fn roll(context: &Context<'_>, id: &str, form: &Form) -> PageResult {
    let account = context.owner()?;
    let seconds = grace_seconds(form.get("grace").unwrap_or_default()).ok_or(PageError::NotFound)?;
    if seconds == 0 && form.get("confirmed").is_none() {
        let link = find(context, id).await?;
        return context.page(&ConfirmPage {
            layout: context.layout("Roll secret", Section::Templates),
            question: format!("Roll the secret of the link “{}” immediately?", link.name),
            consequence: "Addresses that are signed with the secret until now are refused, also those in published pages.",
            button: "Roll secret",
            action: format!("{}/roll", path(id)),
            fields: &[("grace", "0"), ("confirmed", "1")],
            cancel: path(id),
        });
    }
    let secret = account.roll_link(id, account.now() + seconds).await?.ok_or(PageError::NotFound)?;
    Ok(context.redirect_once(&path(id), format!("{id}~{}", secret.expose())))
}

pub(crate) async fn set_disabled(context: &Context<'_>, id: &str, disabled: bool) -> PageResult {
    let found = context.owner()?.set_link_disabled(id, disabled).await?;
    redirect_if_found(found, &path(id), if disabled { "link-disabled" } else { "link-enabled" })
}

/// Asks before a link is disabled or deleted.
pub(crate) async fn confirm(context: &Context<'_>, id: &str, action: &str) -> PageResult {
    let (button, consequence) = match action {
        "disable" => (
            "Disable link",
            "Its addresses are refused. Caches keep the files that they have until their time is over. You can enable it again.",
        ),
        _ => (
            "Delete link",
            "Its addresses are refused. Caches keep the files that they have until their time is over. This cannot be undone.",
        ),
    };
    context.owner()?;
    let link = find(context, id).await?;
    context.page(&ConfirmPage {
        layout: context.layout(button, Section::Templates),
        question: format!("{} the link “{}”?", button.trim_end_matches(" link"), link.name),
        consequence,
        button,
        action: format!("{}/{action}", path(id)),
        fields: &[],
        cancel: path(id),
    })
}

pub(crate) async fn delete(context: &Context<'_>, id: &str) -> PageResult {
    let account = context.owner()?;
    let link = find(context, id).await?;
    if !account.delete_link(id).await? {
        return Err(PageError::NotFound);
    }
    Ok(redirect_with_notice(&list_path(link.template.as_str()), "link-deleted"))
}

async fn show(
    context: &Context<'_>,
    id: &str,
    entered: Option<&Form>,
    settings: Option<LinkForm>,
) -> PageResult {
    let account = context.account()?;
    let link = find(context, id).await?;
    let template = templates::template(context, link.template.as_str()).await?;
    let days = account.days_of_key(id, chart::first_day(account.now())).await?;
    let mut file = file_form(&link, &template, entered);
    let (mut address, mut programs) = (None, Vec::new());
    let server = context.head.base_url();
    match LinkFile::new(link.id.clone(), &format!("{}.{}", file.stem.value, file.extension), given(&file)) {
        Ok(of_link) => {
            programs = link_programs::all(&server, &of_link)?;
            if context.owner().is_ok() {
                let secret = account.link_secret(id).await?.ok_or(PageError::NotFound)?;
                let pixels = pixels(context, &template, &of_link)?;
                address = Some(FileAddress::of(&of_link.signed(&secret), &server, pixels));
            }
        }
        Err(error @ platen_shared::link::InvalidFile::Name) => {
            file.stem = Field::invalid(file.stem.value, &error);
        }
        Err(error) => file.error = Field::invalid("", &error).error,
    }
    let is_wrong = programs.is_empty();
    let created = context.once.as_ref().and_then(Once::parts);
    let new_secret = created.filter(|(of, _)| *of == id).map(|(_, secret)| secret.to_owned());
    let response = context.page(&LinkPage {
        layout: context.layout(&link.name, Section::Templates),
        chart: Chart::new(chart::last_days(account.now(), DAYS_SHOWN, &days)),
        new_secret,
        form: settings.unwrap_or_else(|| LinkForm::of(&link)),
        file,
        address,
        programs,
        link,
    })?;
    Ok(if is_wrong { response.with_status(422) } else { response })
}

/// The form of a file with what was entered, or else with the sample values of the template.
fn file_form(link: &Link, template: &TemplateContent, entered: Option<&Form>) -> FileForm {
    let samples: serde_json::Map<String, Value> = serde_json::from_str(&template.samples).unwrap_or_default();
    let value = |name: String| {
        let value = match entered {
            Some(form) => form.text(&format!("{VALUE_PREFIX}{name}")),
            None => text(samples.get(&name)),
        };
        (name, value)
    };
    let default = link.formats.extensions().next().unwrap_or_default();
    let extension = entered.and_then(|form| form.get("extension")).unwrap_or_default();
    let extension = link.formats.extensions().find(|known| *known == extension).unwrap_or(default);
    FileForm {
        stem: Field::valid(entered.map_or_else(|| stem_of(&link.name), |form| form.text("stem"))),
        extension: extension.to_owned(),
        values: template.names.iter().cloned().map(value).collect(),
        error: String::new(),
        is_jinja: template.template.language == Language::Jinja,
        is_submitted: entered.is_some(),
    }
}

/// The text of a sample value; an address has texts only.
fn text(sample: Option<&Value>) -> String {
    match sample {
        Some(Value::String(text)) => text.clone(),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => value.to_string(),
        _ => String::new(),
    }
}

/// The values of the address.
fn given(form: &FileForm) -> Vec<(String, String)> {
    let is_given = |(_, value): &&(String, String)| !form.is_jinja || !value.is_empty();
    form.values.iter().filter(is_given).cloned().collect()
}

/// Width and height of a file that shows the viewport; `None` for one whose size depends on the page.
fn pixels(
    context: &Context<'_>,
    template: &TemplateContent,
    file: &LinkFile,
) -> Result<Option<(u64, u64)>, PageError> {
    let id = &template.template.id;
    let body = json!({ "templateId": id, "format": file.format.extension(), "variables": file.values });
    let saved = SavedTemplate {
        html: &template.html,
        language: template.template.language,
        options: &template.template.options,
    };
    let account = context.account()?.account_id().clone();
    let request = RenderRequest::parse(Endpoint::Template, body.to_string().as_bytes());
    let Ok(job) = request.and_then(|request| request.into_job(account, Some(saved))) else { return Ok(None) };
    let viewport = &job.options.viewport;
    let side = |pixels: u32| rounded_pixels(pixels.into(), viewport.device_scale_factor);
    Ok(match job.options.output {
        Output::Image(ImageOptions { region: Region::Viewport, .. }) => {
            Some((side(viewport.width.get()), side(viewport.height.get())))
        }
        _ => None,
    })
}
