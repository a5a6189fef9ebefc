//! API keys.

use platen_shared::name::Name;

use crate::{
    component::{
        answer::Answer,
        context::{Context, done},
        page_error::PageError,
    },
    form::{Field, Form},
    pages::{
        Confirm, Section,
        keys::{Keys, NewKey},
    },
};

const PAGE: &str = "/dashboard/keys";

pub(in crate::component) async fn page(c: &Context<'_>) -> Result<Answer, PageError> {
    show(c, None, Field::default()).await
}

/// The key is shown in the answer itself: nowhere is it kept to be shown after a redirect.
pub(in crate::component) async fn create(c: &Context<'_>, form: &Form) -> Result<Answer, PageError> {
    let account = c.account()?;
    let typed = form.text("name");
    match Name::parse(&typed) {
        Ok(name) => {
            let (_, key) = account.create_key(&name).await?;
            let key = key.expose().to_owned();
            let new = NewKey { name: name.to_string(), key, base_url: c.head.base_url() };
            show(c, Some(new), Field::default()).await
        }
        Err(error) => Ok(show(c, None, Field::wrong(typed, &error)).await?.status(422)),
    }
}

pub(in crate::component) async fn set_disabled(
    c: &Context<'_>,
    id: &str,
    disabled: bool,
) -> Result<Answer, PageError> {
    if !c.account()?.set_key_disabled(id, disabled).await? {
        return Err(PageError::NotFound);
    }
    Ok(done(PAGE, if disabled { "key-disabled" } else { "key-enabled" }))
}

pub(in crate::component) async fn ask_delete(c: &Context<'_>, id: &str) -> Result<Answer, PageError> {
    let key = c.account()?.key(id).await?.ok_or(PageError::NotFound)?;
    c.page(&Confirm {
        layout: c.layout("Delete a key", Section::Keys),
        question: format!("Delete the key “{}” ({}…)?", key.name, key.prefix),
        consequence: "Requests with it are refused at once, and it cannot be brought back.",
        button: "Delete key",
        action: format!("{PAGE}/{}/delete", key.id),
        back: PAGE.to_owned(),
    })
}

pub(in crate::component) async fn delete(c: &Context<'_>, id: &str) -> Result<Answer, PageError> {
    if c.account()?.delete_key(id).await? { Ok(done(PAGE, "key-deleted")) } else { Err(PageError::NotFound) }
}

async fn show(c: &Context<'_>, new: Option<NewKey>, name: Field) -> Result<Answer, PageError> {
    let keys = c.account()?.keys().await?;
    c.page(&Keys { layout: c.layout("API Keys", Section::Keys), keys, new, name })
}
