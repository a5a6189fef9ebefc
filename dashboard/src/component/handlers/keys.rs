//! API keys.

use platen_shared::name::Name;

use crate::{
    component::{
        answer::Answer,
        context::{Context, redirect_if_found},
        page_error::PageError,
    },
    form::{Field, Form},
    pages::{
        ConfirmPage, Section,
        keys::{KeysPage, NewKey},
    },
};

const PATH: &str = "/dashboard/keys";

pub(in crate::component) async fn page(c: &Context<'_>) -> Result<Answer, PageError> {
    show(c, None, Field::default()).await
}

/// Shows the key in the response itself, because it is not stored and could not be shown after a redirect.
pub(in crate::component) async fn create(c: &Context<'_>, form: &Form) -> Result<Answer, PageError> {
    let account = c.account()?;
    let entered = form.text("name");
    match Name::parse(&entered) {
        Ok(name) => {
            let key = account.create_key(&name).await?;
            let key = key.expose().to_owned();
            let new = NewKey { name: name.to_string(), key, base_url: c.head.base_url() };
            show(c, Some(new), Field::default()).await
        }
        Err(error) => Ok(show(c, None, Field::invalid(entered, &error)).await?.status(422)),
    }
}

pub(in crate::component) async fn set_disabled(
    c: &Context<'_>,
    id: &str,
    disabled: bool,
) -> Result<Answer, PageError> {
    let found = c.account()?.set_key_disabled(id, disabled).await?;
    redirect_if_found(found, PATH, if disabled { "key-disabled" } else { "key-enabled" })
}

pub(in crate::component) async fn confirm_delete(c: &Context<'_>, id: &str) -> Result<Answer, PageError> {
    let key = c.account()?.key(id).await?.ok_or(PageError::NotFound)?;
    c.page(&ConfirmPage {
        layout: c.layout("Delete API key", Section::Keys),
        question: format!("Delete the API key “{}” ({}…)?", key.name, key.prefix),
        consequence: "Requests with it are refused immediately. This cannot be undone.",
        button: "Delete key",
        action: format!("{PATH}/{}/delete", key.id),
        cancel: PATH.to_owned(),
    })
}

pub(in crate::component) async fn delete(c: &Context<'_>, id: &str) -> Result<Answer, PageError> {
    redirect_if_found(c.account()?.delete_key(id).await?, PATH, "key-deleted")
}

async fn show(c: &Context<'_>, new: Option<NewKey>, name: Field) -> Result<Answer, PageError> {
    let keys = c.account()?.keys().await?;
    c.page(&KeysPage { layout: c.layout("API keys", Section::Keys), keys, new, name })
}
