//! Saved templates.

use platen_shared::{id::TemplateId, limits, name::Name};

use crate::{
    component::{
        answer::Answer,
        context::{Context, done},
        page_error::PageError,
    },
    form::{Field, Form},
    pages::{
        Confirm, Section,
        keys::RENDER_KEY_SECONDS,
        templates::{
            Editor, FIRST_MARKUP, List, OneVersion, Samples, Saved, Template, Versions, curl, with_samples,
        },
    },
    store::templates::Save,
};

const PAGE: &str = "/dashboard/templates";
/// Most bytes of all sample values: a libSQL server's rows hold 5 MB by default, markup included.
const SAMPLES_BYTES: usize = 256 * 1024;

pub(in crate::component) async fn list(c: &Context<'_>) -> Result<Answer, PageError> {
    let account = c.account()?;
    let search = c.head.query.get("q").unwrap_or_default().trim().to_owned();
    let templates = account.templates(&search).await?;
    c.page(&List { layout: c.layout("Templates", Section::Templates), search, templates })
}

pub(in crate::component) fn new_page(c: &Context<'_>) -> Result<Answer, PageError> {
    c.account()?;
    let samples = Samples::from([("name".into(), "World".into())]);
    editor(c, None, Typed::of("", FIRST_MARKUP, &samples))
}

pub(in crate::component) async fn page(c: &Context<'_>, id: &str) -> Result<Answer, PageError> {
    let template = c.account()?.template(id).await?.ok_or(PageError::NotFound)?;
    editor(c, Some(&template), Typed::of(&template.name, &template.html, &template.samples))
}

pub(in crate::component) async fn create(c: &Context<'_>, form: &Form) -> Result<Answer, PageError> {
    save_from(c, None, form).await
}

pub(in crate::component) async fn save(c: &Context<'_>, id: &str, form: &Form) -> Result<Answer, PageError> {
    let template = c.account()?.template(id).await?.ok_or(PageError::NotFound)?;
    save_from(c, Some(&template), form).await
}

async fn save_from(c: &Context<'_>, template: Option<&Template>, form: &Form) -> Result<Answer, PageError> {
    let account = c.account()?;
    let (typed_name, html) = (form.text("name"), form.text("html"));
    let samples = samples(form);
    let typed = Typed::of(&typed_name, &html, &samples);
    let again = |typed: Typed| Ok(editor(c, template, typed)?.status(422));
    let name = match Name::parse(&typed_name) {
        Ok(name) => name,
        Err(error) => return again(Typed { name: Field::wrong(&typed_name, &error), ..typed }),
    };
    let size: usize = samples.iter().map(|(name, value)| name.len() + value.len()).sum();
    if size > SAMPLES_BYTES {
        let samples_error = format!("The sample values have more than {SAMPLES_BYTES} bytes together");
        return again(Typed { samples_error, ..typed });
    }
    let id = template.map(|template| template.id.as_str());
    match account.save_template(id, name, &html, Some(&samples)).await? {
        Save::Done(id) => {
            let word = if template.is_some() { "template-saved" } else { "template-created" };
            Ok(done(&format!("{PAGE}/{id}"), word))
        }
        Save::NoSuchTemplate => Err(PageError::NotFound),
        Save::BadMarkup(error) => again(Typed { html: Field::wrong(&html, &error), ..typed }),
    }
}

/// Sample values of the form; those whose placeholder is gone from the markup stay, for it may
/// come back.
fn samples(form: &Form) -> Samples {
    let samples = form.starting("sample.").take(limits::VARIABLES);
    samples.map(|(name, value)| (name.to_owned(), value.replace("\r\n", "\n"))).collect()
}

pub(in crate::component) async fn duplicate(c: &Context<'_>, id: &str) -> Result<Answer, PageError> {
    let account = c.account()?;
    let template = account.template(id).await?.ok_or(PageError::NotFound)?;
    let name = Name::parse(&template.name).map_err(|_| PageError::NotFound)?.with_suffix(" (copy)");
    match account.save_template(None, name, &template.html, Some(&template.samples)).await? {
        Save::Done(id) => Ok(done(&format!("{PAGE}/{id}"), "template-duplicated")),
        Save::NoSuchTemplate | Save::BadMarkup(_) => Err(PageError::NotFound),
    }
}

pub(in crate::component) async fn ask_delete(c: &Context<'_>, id: &str) -> Result<Answer, PageError> {
    let template = c.account()?.template(id).await?.ok_or(PageError::NotFound)?;
    c.page(&Confirm {
        layout: c.layout("Delete a template", Section::Templates),
        question: format!("Delete the template “{}”?", template.name),
        consequence: "Its versions go with it, and requests with its id are answered “Template not found”.",
        button: "Delete template",
        action: format!("{PAGE}/{}/delete", template.id),
        back: format!("{PAGE}/{}", template.id),
    })
}

pub(in crate::component) async fn delete(c: &Context<'_>, id: &str) -> Result<Answer, PageError> {
    if c.account()?.delete_template(id).await? {
        Ok(done(PAGE, "template-deleted"))
    } else {
        Err(PageError::NotFound)
    }
}

/// A key for the page's own script, and what it needs to render with it.
pub(in crate::component) async fn render_key(c: &Context<'_>, id: &str) -> Result<Answer, PageError> {
    let account = c.account()?;
    let template = account.template(id).await?.ok_or(PageError::NotFound)?;
    let key =
        account.create_render_key(&template.id, RENDER_KEY_SECONDS).await?.ok_or(PageError::NotFound)?;
    let variables: Samples = with_samples(&template.html, &template.samples).into_iter().collect();
    Ok(Answer::json(&serde_json::json!({
        "key": key.expose(),
        "seconds": RENDER_KEY_SECONDS,
        "templateId": template.id,
        "variables": variables,
    })))
}

pub(in crate::component) async fn versions(c: &Context<'_>, id: &str) -> Result<Answer, PageError> {
    let account = c.account()?;
    let template = account.template(id).await?.ok_or(PageError::NotFound)?;
    let versions = account.versions(id).await?;
    let layout = c.layout("Versions", Section::Templates);
    c.page(&Versions { layout, id: template.id.to_string(), name: template.name, versions })
}

pub(in crate::component) async fn version(
    c: &Context<'_>,
    id: &str,
    number: &str,
) -> Result<Answer, PageError> {
    let number = number.parse().map_err(|_| PageError::NotFound)?;
    let version = c.account()?.version(id, number).await?.ok_or(PageError::NotFound)?;
    let layout = c.layout(format!("Version {number}"), Section::Templates);
    c.page(&OneVersion { layout, id: TemplateId::from_text(id).to_string(), version })
}

pub(in crate::component) async fn restore(
    c: &Context<'_>,
    id: &str,
    number: &str,
) -> Result<Answer, PageError> {
    let number = number.parse().map_err(|_| PageError::NotFound)?;
    let account = c.account()?;
    let version = account.version(id, number).await?.ok_or(PageError::NotFound)?;
    let name = Name::parse(&version.name).map_err(|_| PageError::NotFound)?;
    match account.save_template(Some(id), name, &version.html, None).await? {
        Save::Done(id) => Ok(done(&format!("{PAGE}/{id}"), "version-restored")),
        Save::NoSuchTemplate | Save::BadMarkup(_) => Err(PageError::NotFound),
    }
}

/// What the editor's fields hold, and what is wrong with it.
struct Typed {
    name: Field,
    html: Field,
    samples: Vec<(String, String)>,
    samples_error: String,
}

impl Typed {
    fn of(name: &str, html: &str, samples: &Samples) -> Self {
        Self {
            name: Field::of(name),
            html: Field::of(html),
            samples: with_samples(html, samples),
            samples_error: String::new(),
        }
    }
}

fn editor(c: &Context<'_>, template: Option<&Template>, typed: Typed) -> Result<Answer, PageError> {
    let saved = template.map(|template| Saved {
        id: template.id.to_string(),
        updated: template.updated,
        versions: template.versions,
        curl: curl(&c.head.base_url(), template.id.as_str(), &template.html, &template.samples),
    });
    let title = template.map_or("New template", |template| template.name.as_str());
    let layout = c.layout(title, Section::Templates);
    let Typed { name, html, samples, samples_error } = typed;
    c.page(&Editor { layout, saved, name, html, samples, samples_error })
}
