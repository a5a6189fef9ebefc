//! The editor of a template: new, saved, refused, in conflict.

use platen_shared::{
    job::TemplateData, limits, name::Name, request::FieldName, template::Language,
    template_files::TemplateFiles, template_record::BadMarkup,
};
use platen_statements::templates::{SaveOutcome, TemplateContent};
use serde_json::{json, value::RawValue};

use super::{
    playground,
    templates::{PATH, record, template},
};
use crate::{
    files::FormFiles,
    form::{Field, Form},
    pages::{
        Section,
        templates::{Conflict, EditorForm, EditorPage, INITIAL_HTML, Samples},
    },
    playground::{
        body::{Problem, template_options},
        text,
    },
    router::{
        context::{Account, Context, redirect_with_notice},
        page_error::{PageError, PageResult},
    },
    starter::Starter,
};

/// Limit of all sample values of a template: a libSQL server limits rows to 5 MB by default, which also hold
/// the markup.
const MAX_SAMPLES_BYTES: usize = 256 * 1024;

pub(crate) fn new_page(context: &Context<'_>) -> PageResult {
    context.account()?;
    let form = if let Some(starter) = context.head.query.get(Starter::FIELD).and_then(Starter::find) {
        EditorForm::of_starter(starter)
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
    let files = match store_files(&account, &entered).await? {
        Ok(files) => files,
        Err(files_error) => return show_error(EditorForm { files_error, ..entered }),
    };
    if let Some(saved) = &saved
        && entered.revision == Some(saved.revision)
        && record.name.as_str() == saved.template.name
        && entered.html.value == saved.html
        && entered.language == saved.template.language
        && options == saved.template.options
        && entered.has_samples_of(saved)
        && files.as_ref().is_none_or(|files| *files == saved.template.files)
    {
        return Ok(redirect_with_notice(&format!("{PATH}/{}", saved.template.id), "template-unchanged"));
    }
    let (outcome, code) = match id {
        None => (account.create_template(record, Some(&samples), files.as_ref()).await?, "template-created"),
        Some(id) => {
            let revision = entered.revision;
            let outcome = account.save_template(id, record, Some(&samples), files.as_ref(), revision).await?;
            (outcome, "template-saved")
        }
    };
    match outcome {
        SaveOutcome::Saved(id) => Ok(redirect_with_notice(&format!("{PATH}/{id}"), code)),
        SaveOutcome::NotFound => gone(context, form),
        SaveOutcome::FilesGone => {
            let files_error = "A file was deleted meanwhile. Save again.".to_owned();
            show_error(EditorForm { files_error, ..entered })
        }
        SaveOutcome::Conflict(stored) => {
            // The next save replaces the version that this page tells of.
            let form = EditorForm { revision: Some(stored.revision), ..entered };
            let conflict = Conflict::of(&stored, &form, &options, files.as_ref());
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

/// The files of a form, whose new contents are stored for the save that follows, or why they are not valid; `None` to keep those
/// of the template.
async fn store_files(
    account: &Account<'_>,
    form: &EditorForm,
) -> Result<Result<Option<TemplateFiles>, String>, PageError> {
    if !form.files_error.is_empty() {
        return Ok(Err(form.files_error.clone()));
    }
    Ok(match &form.files {
        Some(files) => files.store(account).await?.map(Some),
        None => Ok(None),
    })
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
    // The playground has files in the field of a request.
    let text = form.get("files").or_else(|| form.get(FieldName::Assets.as_str()));
    let parsed = text.filter(|text| !text.trim().is_empty()).map(FormFiles::parse);
    let is_wrong = matches!(parsed, Some(None));
    EditorForm {
        files: parsed.flatten(),
        files_error: if is_wrong {
            "The files are not a JSON object of objects.".to_owned()
        } else {
            String::new()
        },
        revision,
        language: form.text("language").parse().unwrap_or_default(),
        sample_data: form.text("sampleData"),
        ..EditorForm::valid(&form.text("name"), &form.text("html"), options, samples(form))
    }
}

/// The sample values of the form, including those without a placeholder in the markup: a user may add the
/// placeholder again.
fn samples(form: &Form) -> Samples {
    let samples = form.with_prefix("sample.").take(limits::MAX_VARIABLES);
    samples.map(|(name, value)| (name.to_owned(), value.replace("\r\n", "\n"))).collect()
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
    let of_template = || saved.map(|saved| FormFiles::of(&saved.template.files)).unwrap_or_default();
    let files = form.files.clone().unwrap_or_else(of_template);
    let panel = saved.map(|saved| playground::panel_of(context, saved)).transpose()?;
    let page = context.page_with_editor(|style_nonce| EditorPage {
        layout,
        style_nonce,
        saved,
        form,
        files,
        conflict,
        is_unsaved,
        has_preview: context.has_preview(),
        user,
        panel,
    })?;
    Ok(page.with_result_frame())
}
