//! Saved templates: list, editor, versions.

use platen_shared::{id::TemplateId, limits, name::Name};

use crate::{
    component::{
        context::{Context, redirect_if_found, redirect_with_notice},
        page_error::PageError,
        response::PageResponse,
    },
    form::{Field, Form},
    pages::{
        ConfirmPage, Section,
        keys::RENDER_KEY_SECONDS,
        templates::{
            EditorPage, INITIAL_HTML, Samples, SavedTemplate, Template, TemplatesPage, VersionPage,
            VersionsPage, curl, with_samples,
        },
    },
    store::templates::Save,
};

const PATH: &str = "/dashboard/templates";
/// Limit of all sample values of a template: a libSQL server limits rows to 5 MB by default, which also hold
/// the markup.
const MAX_SAMPLES_BYTES: usize = 256 * 1024;

pub(crate) async fn list(context: &Context<'_>) -> Result<PageResponse, PageError> {
    let account = context.account()?;
    let search = context.head.query.get("q").unwrap_or_default().trim().to_owned();
    let templates = account.templates(&search).await?;
    context.page(&TemplatesPage {
        layout: context.layout("Templates", Section::Templates),
        search,
        templates,
    })
}

pub(crate) fn new_page(context: &Context<'_>) -> Result<PageResponse, PageError> {
    context.account()?;
    let samples = Samples::from([("name".into(), "World".into())]);
    show_editor(context, None, EditorForm::valid("", INITIAL_HTML, &samples))
}

pub(crate) async fn page(context: &Context<'_>, id: &str) -> Result<PageResponse, PageError> {
    let template = context.account()?.template(id).await?.ok_or(PageError::NotFound)?;
    show_editor(
        context,
        Some(&template),
        EditorForm::valid(&template.name, &template.html, &template.samples),
    )
}

pub(crate) async fn create(context: &Context<'_>, form: &Form) -> Result<PageResponse, PageError> {
    save_from(context, None, form).await
}

pub(crate) async fn save(context: &Context<'_>, id: &str, form: &Form) -> Result<PageResponse, PageError> {
    let template = context.account()?.template(id).await?.ok_or(PageError::NotFound)?;
    save_from(context, Some(&template), form).await
}

async fn save_from(
    context: &Context<'_>,
    template: Option<&Template>,
    form: &Form,
) -> Result<PageResponse, PageError> {
    let account = context.account()?;
    let (entered_name, html) = (form.text("name"), form.text("html"));
    let samples = samples(form);
    let entered = EditorForm::valid(&entered_name, &html, &samples);
    let show_error = |form: EditorForm| Ok(show_editor(context, template, form)?.with_status(422));
    let name = match Name::parse(&entered_name) {
        Ok(name) => name,
        Err(error) => {
            return show_error(EditorForm { name: Field::invalid(&entered_name, &error), ..entered });
        }
    };
    let size: usize = samples.iter().map(|(name, value)| name.len() + value.len()).sum();
    if size > MAX_SAMPLES_BYTES {
        let samples_error =
            format!("The sample values exceed {MAX_SAMPLES_BYTES} bytes in total. Shorten them.");
        return show_error(EditorForm { samples_error, ..entered });
    }
    let id = template.map(|template| template.id.as_str());
    match account.save_template(id, name, &html, Some(&samples)).await? {
        Save::Done(id) => {
            let code = if template.is_some() { "template-saved" } else { "template-created" };
            Ok(redirect_with_notice(&format!("{PATH}/{id}"), code))
        }
        Save::NoSuchTemplate => Err(PageError::NotFound),
        Save::BadMarkup(error) => show_error(EditorForm { html: Field::invalid(&html, &error), ..entered }),
    }
}

/// The sample values of the form, including those without a placeholder in the markup: a user may add the
/// placeholder again.
fn samples(form: &Form) -> Samples {
    let samples = form.with_prefix("sample.").take(limits::MAX_VARIABLES);
    samples.map(|(name, value)| (name.to_owned(), value.replace("\r\n", "\n"))).collect()
}

pub(crate) async fn duplicate(context: &Context<'_>, id: &str) -> Result<PageResponse, PageError> {
    let account = context.account()?;
    let template = account.template(id).await?.ok_or(PageError::NotFound)?;
    let name = Name::parse(&template.name).map_err(|_| PageError::NotFound)?.with_suffix(" (copy)");
    match account.save_template(None, name, &template.html, Some(&template.samples)).await? {
        Save::Done(id) => Ok(redirect_with_notice(&format!("{PATH}/{id}"), "template-duplicated")),
        Save::NoSuchTemplate | Save::BadMarkup(_) => Err(PageError::NotFound),
    }
}

pub(crate) async fn confirm_delete(context: &Context<'_>, id: &str) -> Result<PageResponse, PageError> {
    let template = context.account()?.template(id).await?.ok_or(PageError::NotFound)?;
    context.page(&ConfirmPage {
        layout: context.layout("Delete template", Section::Templates),
        question: format!("Delete the template “{}”?", template.name),
        consequence: "Its versions are deleted as well. Requests with its ID fail with “Template not found”.",
        button: "Delete template",
        action: format!("{PATH}/{}/delete", template.id),
        cancel: format!("{PATH}/{}", template.id),
    })
}

pub(crate) async fn delete(context: &Context<'_>, id: &str) -> Result<PageResponse, PageError> {
    redirect_if_found(context.account()?.delete_template(id).await?, PATH, "template-deleted")
}

/// JSON for the script of the editor: a short-lived key, and the request that “Render” sends with it.
pub(crate) async fn render_key(context: &Context<'_>, id: &str) -> Result<PageResponse, PageError> {
    let account = context.account()?;
    let template = account.template(id).await?.ok_or(PageError::NotFound)?;
    let key =
        account.create_render_key(&template.id, RENDER_KEY_SECONDS).await?.ok_or(PageError::NotFound)?;
    let variables: Samples = with_samples(&template.html, &template.samples).into_iter().collect();
    Ok(PageResponse::json(&serde_json::json!({
        "key": key.expose(),
        "seconds": RENDER_KEY_SECONDS,
        "templateId": template.id,
        "variables": variables,
    })))
}

pub(crate) async fn versions(context: &Context<'_>, id: &str) -> Result<PageResponse, PageError> {
    let account = context.account()?;
    let template = account.template(id).await?.ok_or(PageError::NotFound)?;
    let versions = account.versions(id).await?;
    let layout = context.layout("Versions", Section::Templates);
    context.page(&VersionsPage { layout, id: template.id.to_string(), name: template.name, versions })
}

pub(crate) async fn version(
    context: &Context<'_>,
    id: &str,
    number: &str,
) -> Result<PageResponse, PageError> {
    let number = number.parse().map_err(|_| PageError::NotFound)?;
    let version = context.account()?.version(id, number).await?.ok_or(PageError::NotFound)?;
    let layout = context.layout(format!("Version {number}"), Section::Templates);
    context.page(&VersionPage { layout, id: TemplateId::from_text(id).to_string(), version })
}

pub(crate) async fn restore(
    context: &Context<'_>,
    id: &str,
    number: &str,
) -> Result<PageResponse, PageError> {
    let number = number.parse().map_err(|_| PageError::NotFound)?;
    let account = context.account()?;
    let version = account.version(id, number).await?.ok_or(PageError::NotFound)?;
    let name = Name::parse(&version.name).map_err(|_| PageError::NotFound)?;
    match account.save_template(Some(id), name, &version.html, None).await? {
        Save::Done(id) => Ok(redirect_with_notice(&format!("{PATH}/{id}"), "version-restored")),
        Save::NoSuchTemplate | Save::BadMarkup(_) => Err(PageError::NotFound),
    }
}

/// The fields of the editor with their errors.
struct EditorForm {
    name: Field,
    html: Field,
    samples: Vec<(String, String)>,
    samples_error: String,
}

impl EditorForm {
    fn valid(name: &str, html: &str, samples: &Samples) -> Self {
        Self {
            name: Field::valid(name),
            html: Field::valid(html),
            samples: with_samples(html, samples),
            samples_error: String::new(),
        }
    }
}

fn show_editor(
    context: &Context<'_>,
    template: Option<&Template>,
    form: EditorForm,
) -> Result<PageResponse, PageError> {
    let saved = template.map(|template| SavedTemplate {
        id: template.id.to_string(),
        updated: template.updated,
        versions: template.versions,
        curl: curl(&context.head.base_url(), template.id.as_str(), &template.html, &template.samples),
    });
    let title = template.map_or("New template", |template| template.name.as_str());
    let layout = context.layout(title, Section::Templates);
    let EditorForm { name, html, samples, samples_error } = form;
    context.page(&EditorPage { layout, saved, name, html, samples, samples_error })
}
