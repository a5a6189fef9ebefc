//! Saved templates: list, editor, versions.

use platen_shared::{id::TemplateId, limits, name::Name, template_record::TemplateRecord};
use platen_statements::templates::TemplateContent;

use crate::{
    component::{
        context::{Context, redirect_if_found, redirect_with_notice},
        page_error::{PageError, PageResult},
        response::PageResponse,
    },
    form::{Field, Form},
    pages::{
        ConfirmPage, Section,
        keys::RENDER_KEY_SECONDS,
        templates::{
            EditorForm, EditorPage, INITIAL_HTML, Samples, TemplatesPage, VersionPage, VersionsPage,
            with_samples,
        },
    },
};

const PATH: &str = "/dashboard/templates";
/// Limit of all sample values of a template: a libSQL server limits rows to 5 MB by default, which also hold
/// the markup.
const MAX_SAMPLES_BYTES: usize = 256 * 1024;

pub(crate) async fn list(context: &Context<'_>) -> PageResult {
    let account = context.account()?;
    let search = context.head.query.get("q").unwrap_or_default().trim().to_owned();
    let templates = account.search_templates(&search).await?;
    context.page(&TemplatesPage {
        layout: context.layout("Templates", Section::Templates),
        search,
        templates,
    })
}

pub(crate) fn new_page(context: &Context<'_>) -> PageResult {
    context.account()?;
    let samples = Samples::from([("name".into(), "World".into())]);
    show_editor(context, None, EditorForm::valid("", INITIAL_HTML, &samples))
}

pub(crate) async fn page(context: &Context<'_>, id: &str) -> PageResult {
    let saved = template(context, id).await?;
    let form = EditorForm::valid(&saved.template.name, &saved.html, &saved.samples);
    show_editor(context, Some(&saved), form)
}

pub(crate) async fn create(context: &Context<'_>, form: &Form) -> PageResult {
    save_from(context, None, form).await
}

pub(crate) async fn save(context: &Context<'_>, id: &str, form: &Form) -> PageResult {
    save_from(context, Some(&template(context, id).await?), form).await
}

async fn save_from(context: &Context<'_>, saved: Option<&TemplateContent>, form: &Form) -> PageResult {
    context.account()?;
    let (entered_name, html) = (form.text("name"), form.text("html"));
    let samples = samples(form);
    let entered = EditorForm::valid(&entered_name, &html, &samples);
    let show_error = |form: EditorForm| Ok(show_editor(context, saved, form)?.with_status(422));
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
    let record = match TemplateRecord::new(name, &html) {
        Ok(record) => record,
        Err(error) => return show_error(EditorForm { html: Field::invalid(&html, &error), ..entered }),
    };
    let id = saved.map(|saved| saved.template.id.as_str());
    let code = if saved.is_some() { "template-saved" } else { "template-created" };
    store(context, id, record, Some(&samples), code).await
}

/// Saves a template: a new one, or in place of `id`. Without samples, a template keeps its samples.
async fn store(
    context: &Context<'_>,
    id: Option<&str>,
    record: TemplateRecord,
    samples: Option<&Samples>,
    code: &'static str,
) -> PageResult {
    let saved = context.account()?.save_template(id, record, samples).await?;
    let id = saved.ok_or(PageError::NotFound)?;
    Ok(redirect_with_notice(&format!("{PATH}/{id}"), code))
}

/// A template of the account with its markup.
async fn template(context: &Context<'_>, id: &str) -> Result<TemplateContent, PageError> {
    context.account()?.template_content(id).await?.ok_or(PageError::NotFound)
}

/// The sample values of the form, including those without a placeholder in the markup: a user may add the
/// placeholder again.
fn samples(form: &Form) -> Samples {
    let samples = form.with_prefix("sample.").take(limits::MAX_VARIABLES);
    samples.map(|(name, value)| (name.to_owned(), value.replace("\r\n", "\n"))).collect()
}

pub(crate) async fn duplicate(context: &Context<'_>, id: &str) -> PageResult {
    let saved = template(context, id).await?;
    let name = Name::parse(&saved.template.name).map_err(|_| PageError::NotFound)?.with_suffix(" (copy)");
    let record = TemplateRecord::new(name, &saved.html).map_err(|_| PageError::NotFound)?;
    store(context, None, record, Some(&saved.samples), "template-duplicated").await
}

pub(crate) async fn confirm_delete(context: &Context<'_>, id: &str) -> PageResult {
    let template = template(context, id).await?.template;
    context.page(&ConfirmPage {
        layout: context.layout("Delete template", Section::Templates),
        question: format!("Delete the template “{}”?", template.name),
        consequence: "Its versions are deleted as well. Requests with its ID fail with “Template not found”.",
        button: "Delete template",
        action: format!("{PATH}/{}/delete", template.id),
        cancel: format!("{PATH}/{}", template.id),
    })
}

pub(crate) async fn delete(context: &Context<'_>, id: &str) -> PageResult {
    redirect_if_found(context.account()?.delete_template(id).await?, PATH, "template-deleted")
}

/// JSON for the script of the editor: a short-lived key, and the request that “Render” sends with it.
pub(crate) async fn render_key(context: &Context<'_>, id: &str) -> PageResult {
    let TemplateContent { template, html, samples, .. } = template(context, id).await?;
    let key = context.account()?.create_render_key(&template.id, RENDER_KEY_SECONDS).await?;
    let key = key.ok_or(PageError::NotFound)?;
    let variables: Samples = with_samples(&html, &samples).into_iter().collect();
    Ok(PageResponse::json(&serde_json::json!({
        "key": key.expose(),
        "seconds": RENDER_KEY_SECONDS,
        "templateId": template.id,
        "variables": variables,
    })))
}

pub(crate) async fn versions(context: &Context<'_>, id: &str) -> PageResult {
    let template = template(context, id).await?.template;
    let versions = context.account()?.versions(id).await?;
    context.page(&VersionsPage { layout: context.layout("Versions", Section::Templates), template, versions })
}

pub(crate) async fn version(context: &Context<'_>, id: &str, number: &str) -> PageResult {
    let number = number.parse().map_err(|_| PageError::NotFound)?;
    let (version, html) = context.account()?.version(id, number).await?.ok_or(PageError::NotFound)?;
    let layout = context.layout(format!("Version {number}"), Section::Templates);
    context.page(&VersionPage { layout, id: TemplateId::from_text(id), version, html })
}

pub(crate) async fn restore(context: &Context<'_>, id: &str, number: &str) -> PageResult {
    let number = number.parse().map_err(|_| PageError::NotFound)?;
    let (version, html) = context.account()?.version(id, number).await?.ok_or(PageError::NotFound)?;
    let name = Name::parse(&version.name).map_err(|_| PageError::NotFound)?;
    let record = TemplateRecord::new(name, &html).map_err(|_| PageError::NotFound)?;
    store(context, Some(id), record, None, "version-restored").await
}

fn show_editor(context: &Context<'_>, saved: Option<&TemplateContent>, form: EditorForm) -> PageResult {
    let title = saved.map_or("New template", |saved| saved.template.name.as_str());
    let layout = context.layout(title, Section::Templates);
    context.page(&EditorPage { layout, saved, form, base_url: context.head.base_url() })
}
