//! Saved templates.

use platen_shared::{id::AccountId, name::Name, template_record::TemplateRecord};
use platen_statements::templates::Template;
use serde::Serialize;

use super::{Admin, AdminError};

/// A template with its markup.
#[derive(Debug, Serialize)]
pub(crate) struct TemplateWithMarkup {
    #[serde(flatten)]
    template: Template,
    pub(crate) html: String,
}

impl Admin {
    /// Saves a template of an account: a new one, or in place of `id`.
    pub(crate) async fn save_template(
        &self,
        account: &str,
        name: &str,
        html: &str,
        id: Option<&str>,
    ) -> Result<Template, AdminError> {
        let record = TemplateRecord::new(Name::parse(name)?, html)?;
        let account = self.account(account).await?.id;
        let saved = self.operator().account_scope(&account).save_template(id, record, None).await?;
        if let Some(id) = saved {
            return self.template_record(&account, id.as_str()).await;
        }
        let id = id.unwrap_or_default();
        self.owner_of_template(id).await?;
        Err(AdminError::ForeignTemplate(id.to_owned()))
    }

    /// Every template, or those of one account, the oldest first.
    pub(crate) async fn templates(&self, account: Option<&str>) -> Result<Vec<Template>, AdminError> {
        let Some(account) = account else { return self.operator().templates().await };
        let id = self.account(account).await?.id;
        self.operator().account_scope(&id).templates().await
    }

    pub(crate) async fn template(&self, id: &str) -> Result<TemplateWithMarkup, AdminError> {
        let account = self.owner_of_template(id).await?;
        let found = self.operator().account_scope(&account).template_content(id).await?;
        let content = found.ok_or_else(|| AdminError::NoTemplate(id.to_owned()))?;
        Ok(TemplateWithMarkup { template: content.template, html: content.html })
    }

    /// Deletes a template and returns its last record.
    pub(crate) async fn delete_template(&self, id: &str) -> Result<Template, AdminError> {
        let account = self.owner_of_template(id).await?;
        let template = self.template_record(&account, id).await?;
        self.operator().account_scope(&account).delete_template(id).await?;
        Ok(template)
    }

    async fn template_record(&self, account: &AccountId, id: &str) -> Result<Template, AdminError> {
        let template = self.operator().account_scope(account).template(id).await?;
        template.ok_or_else(|| AdminError::NoTemplate(id.to_owned()))
    }

    async fn owner_of_template(&self, id: &str) -> Result<AccountId, AdminError> {
        let owner = self.operator().owner_of_template(id).await?;
        owner.ok_or_else(|| AdminError::NoTemplate(id.to_owned()))
    }
}
