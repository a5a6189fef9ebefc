//! Saved templates: list, copies, versions, contents of files.

use platen_shared::{
    id::TemplateId,
    job::ContentHash,
    name::Name,
    request::TemplateOptions,
    template::Language,
    template_record::{BadMarkup, TemplateRecord},
};
use platen_statements::{
    accounts::counted,
    templates::{SaveOutcome, TemplateContent, VersionContent},
};

use crate::{
    pages::{
        ConfirmPage, Section,
        paging::{PAGE_ROWS, Paging},
        templates::{TemplatesPage, VersionPage, VersionsPage},
    },
    router::{
        context::{Context, redirect_if_found, redirect_with_notice},
        page_error::{PageError, PageResult},
        response::PageResponse,
    },
    search::Search,
};

pub(super) const PATH: &str = "/dashboard/templates";

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

/// The columns of a template, or why it is not valid.
pub(super) fn record(
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

/// The page of a template that was saved.
fn saved_as(outcome: SaveOutcome, code: &'static str) -> PageResult {
    match outcome {
        SaveOutcome::Saved(id) => Ok(redirect_with_notice(&format!("{PATH}/{id}"), code)),
        SaveOutcome::Conflict(_) | SaveOutcome::NotFound | SaveOutcome::FilesGone => Err(PageError::NotFound),
    }
}

/// A template of the account with its markup.
pub(super) async fn template(context: &Context<'_>, id: &str) -> Result<TemplateContent, PageError> {
    context.account()?.template_content(id).await?.ok_or(PageError::NotFound)
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
    let account = context.owner()?;
    let TemplateContent { template, versions, .. } = template(context, id).await?;
    let links = account.links(Some(id)).await?.len() as u64;
    context.page(&ConfirmPage {
        layout: context.layout("Delete template", Section::Templates),
        question: format!(
            "Delete the template “{}” with {} and {}?",
            template.name,
            counted(versions.into(), "earlier version"),
            counted(links, "link")
        ),
        consequence: "Requests with its ID fail with “Template not found”, and addresses of its links are refused. This \
                      cannot be undone.",
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

/// The content of a file, for the scripts of pages: with no media type, and to be saved, so that no browser shows it as a page.
pub(crate) async fn file(context: &Context<'_>, hash: &str) -> PageResult {
    let hash = ContentHash::try_from(hash.to_owned()).map_err(|_| PageError::NotFound)?;
    let contents = context.account()?.template_file_contents(&[hash]).await?;
    let bytes = contents.into_values().next().ok_or(PageError::NotFound)?;
    Ok(PageResponse::download("application/octet-stream", "file", bytes))
}
