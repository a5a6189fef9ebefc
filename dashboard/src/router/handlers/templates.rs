//! Saved templates: list, editor, versions.

use platen_shared::{
    id::TemplateId,
    job::TemplateData,
    limits,
    name::Name,
    request::{FieldName, TemplateOptions},
    template::Language,
    template_record::{BadMarkup, TemplateRecord},
};
use platen_statements::templates::{SaveOutcome, TemplateContent, VersionContent};
use serde_json::{json, value::RawValue};

use super::playground;
use crate::{
    form::{Field, Form},
    pages::{
        ConfirmPage, Section,
        paging::{PAGE_ROWS, Paging},
        templates::{
            Conflict, EditorForm, EditorPage, INITIAL_HTML, Samples, TemplatesPage, VersionPage, VersionsPage,
        },
    },
    playground::{
        body::{Problem, template_options},
        text,
    },
    router::{
        context::{Context, redirect_if_found, redirect_with_notice},
        page_error::{PageError, PageResult},
    },
    search::Search,
    starter::Starter,
};

const PATH: &str = "/dashboard/templates";
/// Limit of all sample values of a template: a libSQL server limits rows to 5 MB by default, which also hold
/// the markup.
const MAX_SAMPLES_BYTES: usize = 256 * 1024;

pub(crate) async fn list(context: &Context<'_>) -> PageResult {
    let account = context.account()?;
    let query = &context.head.query;
    let search = query.get("q").unwrap_or_default().trim().to_owned();
    let paging = |rows| Paging::new(query.get("page"), rows, PATH, &[("q", &search)]);
    let (paging, names) = if let Some(words) = Search::of(&search) {
        // SQLite compares letters of ASCII only without regard to case.
        let mut names = account.template_names(u32::MAX.into(), 0).await?;
        names.retain(|(id, name)| words.finds(&[id.as_str(), name]));
        let paging = paging(names.len() as u64);
        let names = paging.slice_of(names);
        (paging, names)
    } else {
        let paging = paging(account.count_templates().await?);
        let names = account.template_names(PAGE_ROWS, paging.offset()).await?;
        (paging, names)
    };
    let ids: Vec<TemplateId> = names.into_iter().map(|(id, _)| id).collect();
    let templates = account.templates_of(&ids).await?;
    context.page(&TemplatesPage {
        layout: context.layout("Templates", Section::Templates),
        search,
        templates,
        paging,
    })
}

pub(crate) fn new_page(context: &Context<'_>) -> PageResult {
    context.account()?;
    let form = if let Some(starter) = context.head.query.get(Starter::FIELD).and_then(Starter::find) {
        EditorForm {
            starter: Some(starter),
            ..EditorForm::valid(starter.name, starter.html, starter.options(), starter.samples())
        }
    } else {
        let samples = Samples::from([("name".into(), "World".into())]);
        EditorForm::valid("", INITIAL_HTML, Form::default(), samples)
    };
    show_editor(context, Editing::of(form))
}

pub(crate) async fn page(context: &Context<'_>, id: &str) -> PageResult {
    let saved = template(context, id).await?;
    let options = text::form_of_options(&saved.template.options);
    let form = EditorForm {
        revision: Some(saved.revision),
        language: saved.template.language,
        sample_data: saved.samples.clone(),
        ..EditorForm::valid(&saved.template.name, &saved.html, options, saved.sample_texts())
    };
    show_editor(context, Editing { saved: Some(&saved), ..Editing::of(form) })
}

/// The editor with what was entered into it.
pub(crate) async fn resume(context: &Context<'_>, id: Option<&str>, form: &Form) -> PageResult {
    let saved = match id {
        Some(id) => context.account()?.template_content(id).await?,
        None => None,
    };
    let editing = Editing { saved: saved.as_ref(), is_unsaved: true, ..Editing::of(entered(form)) };
    show_editor(context, editing)
}

pub(crate) async fn create(context: &Context<'_>, form: &Form) -> PageResult {
    save_from(context, None, form).await
}

pub(crate) async fn save(context: &Context<'_>, id: &str, form: &Form) -> PageResult {
    save_from(context, Some(id), form).await
}

async fn save_from(context: &Context<'_>, id: Option<&str>, form: &Form) -> PageResult {
    let account = context.account()?;
    let saved = match id {
        Some(id) => account.template_content(id).await?,
        None => None,
    };
    if id.is_some() && saved.is_none() {
        return gone(context, form);
    }
    let entered = entered(form);
    let show_error = |form: EditorForm| {
        let editing = Editing { saved: saved.as_ref(), is_unsaved: true, ..Editing::of(form) };
        Ok(show_editor(context, editing)?.with_status(422))
    };
    let name = match Name::parse(&entered.name.value) {
        Ok(name) => name,
        Err(error) => {
            let name = Field::invalid(&entered.name.value, &error);
            return show_error(EditorForm { name, ..entered });
        }
    };
    let samples = match samples_of(&entered) {
        Ok(samples) => samples,
        Err(samples_error) => return show_error(EditorForm { samples_error, ..entered }),
    };
    let options = match template_options(&entered.options) {
        Ok(options) => options,
        Err(problem) => return show_error(EditorForm { problem: Some(problem), ..entered }),
    };
    let record = match record(entered.language, name, &entered.html.value, options.clone()) {
        Ok(record) => record,
        Err(error @ BadMarkup::Syntax { field: Some(field), .. }) => {
            let problem = Problem { field: field.to_string(), message: error.to_string() };
            return show_error(EditorForm { problem: Some(problem), ..entered });
        }
        Err(error) => {
            let html = Field::invalid(&entered.html.value, &error);
            return show_error(EditorForm { html, ..entered });
        }
    };
    if let Some(saved) = &saved
        && entered.revision == Some(saved.revision)
        && record.name.as_str() == saved.template.name
        && entered.html.value == saved.html
        && entered.language == saved.template.language
        && options == saved.template.options
        && entered.has_samples_of(saved)
    {
        return Ok(redirect_with_notice(&format!("{PATH}/{}", saved.template.id), "template-unchanged"));
    }
    let Some(id) = id else {
        return saved_as(account.create_template(record, Some(&samples), None).await?, "template-created");
    };
    match account.save_template(id, record, Some(&samples), None, entered.revision).await? {
        SaveOutcome::Saved(id) => Ok(redirect_with_notice(&format!("{PATH}/{id}"), "template-saved")),
        SaveOutcome::NotFound | SaveOutcome::FilesGone => gone(context, form),
        SaveOutcome::Conflict(stored) => {
            // The next save replaces the version that this page tells of.
            let form = EditorForm { revision: Some(stored.revision), ..entered };
            let conflict = Conflict::of(&stored, &form, &options);
            let editing = Editing {
                saved: Some(&stored),
                conflict: Some(conflict),
                is_unsaved: true,
                ..Editing::of(form)
            };
            Ok(show_editor(context, editing)?.with_status(409))
        }
    }
}

/// The columns of a template, or why it is not valid.
fn record(
    language: Language,
    name: Name,
    html: &str,
    options: TemplateOptions,
) -> Result<TemplateRecord, BadMarkup> {
    let check = |text: &str| platen_jinja::check(text).map_err(|error| (error.line, error.message));
    match language {
        Language::Placeholders => TemplateRecord::new(name, html, options),
        Language::Jinja => TemplateRecord::jinja(name, html, options, check),
    }
}

/// The sample values of a form as a JSON object, or why they are not valid.
fn samples_of(form: &EditorForm) -> Result<String, String> {
    let (samples, size) = match form.language {
        Language::Placeholders => {
            let size = form.samples.iter().map(|(name, value)| name.len() + value.len()).sum();
            (json!(form.samples).to_string(), size)
        }
        Language::Jinja => {
            let json: &RawValue = serde_json::from_str(&form.sample_data)
                .map_err(|error| format!("The sample values are not valid JSON: {error}."))?;
            TemplateData::try_from(json).map_err(|error| format!("The sample values {error}."))?;
            (form.sample_data.clone(), form.sample_data.len())
        }
    };
    if size > MAX_SAMPLES_BYTES {
        return Err(format!("The sample values exceed {MAX_SAMPLES_BYTES} bytes in total. Shorten them."));
    }
    Ok(samples)
}

/// The editor of a new template with the content of one that does not exist any more.
fn gone(context: &Context<'_>, form: &Form) -> PageResult {
    let form = EditorForm { revision: None, ..entered(form) };
    let warning = "This template does not exist any more, or you do not have access to it. “Create template” saves \
                   what you entered as a new one.";
    let editing = Editing { warning: Some(warning), is_unsaved: true, ..Editing::of(form) };
    Ok(show_editor(context, editing)?.with_status(404))
}

/// What was entered into the editor.
pub(super) fn entered(form: &Form) -> EditorForm {
    let revision = form.get("revision").and_then(|revision| revision.parse().ok());
    let is_option = |name: &str| {
        let field = name.split('.').next();
        FieldName::of_template().any(|option| Some(option.as_str()) == field)
    };
    let options = form.fields().filter(|(name, _)| is_option(name));
    let options = Form::of(options.map(|(name, value)| (name.to_owned(), value.to_owned())).collect());
    EditorForm {
        revision,
        language: form.text("language").parse().unwrap_or_default(),
        sample_data: form.text("sampleData"),
        ..EditorForm::valid(&form.text("name"), &form.text("html"), options, samples(form))
    }
}

/// The page of a template that was saved.
fn saved_as(outcome: SaveOutcome, code: &'static str) -> PageResult {
    match outcome {
        SaveOutcome::Saved(id) => Ok(redirect_with_notice(&format!("{PATH}/{id}"), code)),
        SaveOutcome::Conflict(_) | SaveOutcome::NotFound | SaveOutcome::FilesGone => Err(PageError::NotFound),
    }
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
    let name = Name::stored(saved.template.name.clone()).with_suffix(" (copy)");
    let record = record(saved.template.language, name, &saved.html, saved.template.options.clone())
        .map_err(|_| PageError::NotFound)?;
    let (samples, files) = (Some(saved.samples.as_str()), Some(&saved.template.files));
    saved_as(context.account()?.create_template(record, samples, files).await?, "template-duplicated")
}

pub(crate) async fn confirm_delete(context: &Context<'_>, id: &str) -> PageResult {
    context.owner()?;
    let template = template(context, id).await?.template;
    context.page(&ConfirmPage {
        layout: context.layout("Delete template", Section::Templates),
        question: format!("Delete the template “{}”?", template.name),
        consequence: "Its versions are deleted as well. Requests with its ID fail with “Template not found”.",
        button: "Delete template",
        action: format!("{PATH}/{}/delete", template.id),
        fields: &[],
        cancel: format!("{PATH}/{}", template.id),
    })
}

pub(crate) async fn delete(context: &Context<'_>, id: &str) -> PageResult {
    redirect_if_found(context.owner()?.delete_template(id).await?, PATH, "template-deleted")
}

pub(crate) async fn versions(context: &Context<'_>, id: &str) -> PageResult {
    let template = template(context, id).await?.template;
    let versions = context.account()?.versions(id).await?;
    context.page(&VersionsPage { layout: context.layout("Versions", Section::Templates), template, versions })
}

pub(crate) async fn version(context: &Context<'_>, id: &str, number: &str) -> PageResult {
    let number = number.parse().map_err(|_| PageError::NotFound)?;
    let version = context.account()?.version(id, number).await?.ok_or(PageError::NotFound)?;
    let current = template(context, id).await?;
    let layout = context.layout(format!("Version {number}"), Section::Templates);
    context.page_with_editor(|nonce| VersionPage::new((layout, nonce), version, &current))
}

pub(crate) async fn restore(context: &Context<'_>, id: &str, number: &str) -> PageResult {
    let number = number.parse().map_err(|_| PageError::NotFound)?;
    let account = context.account()?;
    let VersionContent { version, language, options, files, html } =
        account.version(id, number).await?.ok_or(PageError::NotFound)?;
    let name = Name::stored(version.name);
    let record = record(language, name, &html, options).map_err(|_| PageError::NotFound)?;
    saved_as(account.save_template(id, record, None, Some(&files), None).await?, "version-restored")
}

/// What the editor shows.
struct Editing<'t> {
    form: EditorForm,
    saved: Option<&'t TemplateContent>,
    conflict: Option<Conflict>,
    warning: Option<&'static str>,
    /// Whether the form differs from what is saved.
    is_unsaved: bool,
}

impl Editing<'_> {
    fn of(form: EditorForm) -> Self {
        Self { form, saved: None, conflict: None, warning: None, is_unsaved: false }
    }
}

fn show_editor(context: &Context<'_>, editing: Editing<'_>) -> PageResult {
    let Editing { form, saved, conflict, warning, is_unsaved } = editing;
    let title = saved.map_or("New template", |saved| saved.template.name.as_str());
    let mut layout = context.layout(title, Section::Templates);
    layout.warning = warning.or(layout.warning);
    let user = context.current_user()?.user.clone();
    let panel = saved.map(|saved| playground::panel_of(context, saved)).transpose()?;
    let page = context.page_with_editor(|style_nonce| EditorPage {
        layout,
        style_nonce,
        saved,
        form,
        conflict,
        is_unsaved,
        has_preview: context.has_preview(),
        user,
        panel,
    })?;
    Ok(page.with_result_frame())
}
