//! API keys.

use platen_shared::name::Name;

use crate::{
    component::{
        context::{Context, redirect_if_found},
        page_error::{PageError, PageResult},
    },
    form::{Field, Form},
    once::Once,
    pages::{
        ConfirmPage, Section,
        keys::{KeysPage, NewKey},
    },
};

const PATH: &str = "/dashboard/keys";

pub(crate) async fn page(context: &Context<'_>) -> PageResult {
    show(context, Field::default()).await
}

/// The page with what was entered into its form.
pub(crate) async fn resume(context: &Context<'_>, form: &Form) -> PageResult {
    show(context, Field::valid(form.text("name"))).await
}

pub(crate) async fn create(context: &Context<'_>, form: &Form) -> PageResult {
    let account = context.account()?;
    let entered = form.text("name");
    match Name::parse(&entered) {
        Ok(name) => {
            let (id, key) = account.create_key(&name).await?;
            Ok(context.redirect_once(PATH, format!("{id}~{}", key.expose())))
        }
        Err(error) => Ok(show(context, Field::invalid(entered, &error)).await?.with_status(422)),
    }
}

pub(crate) async fn set_disabled(context: &Context<'_>, id: &str, disabled: bool) -> PageResult {
    let found = context.account()?.set_key_disabled(id, disabled).await?;
    redirect_if_found(found, PATH, if disabled { "key-disabled" } else { "key-enabled" })
}

pub(crate) async fn confirm_delete(context: &Context<'_>, id: &str) -> PageResult {
    let key = context.account()?.key(id).await?.ok_or(PageError::NotFound)?;
    context.page(&ConfirmPage {
        layout: context.layout("Delete API key", Section::Keys),
        question: format!("Delete the API key “{}” ({}…)?", key.name, key.prefix),
        consequence: "Requests with it are refused immediately. This cannot be undone.",
        button: "Delete key",
        action: format!("{PATH}/{}/delete", key.id),
        cancel: PATH.to_owned(),
    })
}

pub(crate) async fn delete(context: &Context<'_>, id: &str) -> PageResult {
    redirect_if_found(context.account()?.delete_key(id).await?, PATH, "key-deleted")
}

async fn show(context: &Context<'_>, name: Field) -> PageResult {
    let keys = context.account()?.keys().await?;
    let created = context.once.as_ref().and_then(Once::parts);
    let new = created.and_then(|(id, key)| {
        let name = keys.iter().find(|known| known.id.as_str() == id)?.name.clone();
        Some(NewKey { name, key: key.to_owned(), base_url: context.head.base_url() })
    });
    context.page(&KeysPage { layout: context.layout("API Keys", Section::Keys), keys, new, name })
}
