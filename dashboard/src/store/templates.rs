//! An account's templates and their versions.

use platen_component::database::DatabaseError;
use platen_shared::{
    id::TemplateId,
    name::Name,
    template_record::{BadMarkup, TemplateRecord},
};
use platen_statements::templates;

use super::account::Account;
use crate::{
    clock::Timestamp,
    pages::templates::{Samples, Template, TemplateSummary, Version},
};

/// The outcome of a save.
pub(crate) enum Save {
    Done(TemplateId),
    NoSuchTemplate,
    BadMarkup(BadMarkup),
}

impl Account<'_> {
    /// The templates whose names contain this text, the last changed first.
    pub(crate) async fn templates(&self, search: &str) -> Result<Vec<TemplateSummary>, DatabaseError> {
        let templates = self.search_templates(search).await?.into_iter();
        let listed = templates.map(|template| TemplateSummary {
            id: template.id.to_string(),
            name: template.name,
            placeholders: template.placeholders,
            updated: Timestamp(template.updated_at.0),
        });
        Ok(listed.collect())
    }

    /// One template.
    pub(crate) async fn template(&self, id: &str) -> Result<Option<Template>, DatabaseError> {
        let Some((template, content)) = self.template_content(id).await? else { return Ok(None) };
        Ok(Some(Template {
            id: template.id,
            name: template.name,
            html: content.html,
            samples: content.samples,
            updated: Timestamp(template.updated_at.0),
            versions: content.versions,
        }))
    }

    /// Saves a template: a new one, or in place of `id`. Without samples, a template keeps its samples.
    pub(crate) async fn save_template(
        &self,
        id: Option<&str>,
        name: Name,
        html: &str,
        samples: Option<&Samples>,
    ) -> Result<Save, DatabaseError> {
        let record = match TemplateRecord::new(name, html) {
            Ok(record) => record,
            Err(error) => return Ok(Save::BadMarkup(error)),
        };
        let saved = self.0.save_template(id, record, samples).await?;
        Ok(saved.map_or(Save::NoSuchTemplate, Save::Done))
    }

    /// The earlier versions of a template, the newest first.
    pub(crate) async fn versions(&self, id: &str) -> Result<Vec<Version>, DatabaseError> {
        Ok(self.0.versions(id).await?.into_iter().map(|row| version(row, String::new())).collect())
    }

    /// One earlier version.
    pub(crate) async fn version(&self, id: &str, number: u32) -> Result<Option<Version>, DatabaseError> {
        Ok(self.0.version(id, number).await?.map(|(row, html)| version(row, html)))
    }
}

fn version(row: templates::Version, html: String) -> Version {
    Version { number: row.number, name: row.name, saved: Timestamp(row.saved_at.0), html }
}
