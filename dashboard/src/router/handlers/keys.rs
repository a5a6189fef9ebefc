//! API keys.

use platen_shared::{id::KeyId, key::ApiKey, name::Name};

use crate::{
    chart::{self, Chart, DAYS_SHOWN},
    cookies::Once,
    form::{Field, Form},
    pages::{
        ConfirmPage, Section,
        keys::{KeyPage, KeysPage, NewKey, grace_seconds, last_day, parse_expiry},
    },
    router::{
        context::{Context, redirect_if_found},
        page_error::{PageError, PageResult},
        response::PageResponse,
    },
};

const PATH: &str = "/dashboard/keys";

pub(crate) async fn list(context: &Context<'_>) -> PageResult {
    show(context, Field::default(), Field::default()).await
}

/// The page with what was entered into its form.
pub(crate) async fn resume(context: &Context<'_>, form: &Form) -> PageResult {
    show(context, Field::valid(form.text("name")), Field::valid(form.text("expires"))).await
}

pub(crate) async fn create(context: &Context<'_>, form: &Form) -> PageResult {
    let account = context.account()?;
    let (name_text, expires_text) = (form.text("name"), form.text("expires"));
    let parsed = (Name::parse(&name_text), parse_expiry(&expires_text, account.now()));
    if let (Ok(name), Ok(expires_at)) = &parsed {
        let (id, key) = account.create_key(name, *expires_at).await?;
        return Ok(redirect_to_new(context, &id, &key));
    }
    let (name, expires) = (Field::parsed(&name_text, parsed.0), Field::parsed(&expires_text, parsed.1));
    Ok(show(context, name, expires).await?.with_status(422))
}

fn redirect_to_new(context: &Context<'_>, id: &KeyId, key: &ApiKey) -> PageResponse {
    context.redirect_once(PATH, format!("{id}~{}", key.expose()))
}

pub(crate) async fn page(context: &Context<'_>, id: &str) -> PageResult {
    show_key(context, id, None, None).await
}

/// The page of a key with what was entered into one of its forms.
pub(crate) async fn resume_key(context: &Context<'_>, id: &str, form: &Form) -> PageResult {
    let field = |name| form.get(name).map(Field::valid);
    show_key(context, id, field("name"), field("expires")).await
}

pub(crate) async fn rename(context: &Context<'_>, id: &str, form: &Form) -> PageResult {
    let entered = form.text("name");
    match Name::parse(&entered) {
        Ok(name) => {
            let found = context.account()?.rename_key(id, &name).await?;
            redirect_if_found(found, &format!("{PATH}/{id}"), "key-renamed")
        }
        Err(error) => {
            let name = Field::invalid(entered, &error);
            Ok(show_key(context, id, Some(name), None).await?.with_status(422))
        }
    }
}

pub(crate) async fn set_expiry(context: &Context<'_>, id: &str, form: &Form) -> PageResult {
    let account = context.owner()?;
    let entered = form.text("expires");
    match parse_expiry(&entered, account.now()) {
        Ok(expires_at) => {
            let found = account.set_key_expiry(id, expires_at).await?;
            redirect_if_found(found, &format!("{PATH}/{id}"), "key-expiry-changed")
        }
        Err(error) => {
            let expires = Field::invalid(entered, error);
            Ok(show_key(context, id, None, Some(expires)).await?.with_status(422))
        }
    }
}

pub(crate) async fn roll(context: &Context<'_>, id: &str, form: &Form) -> PageResult {
    let account = context.owner()?;
    let seconds = grace_seconds(form.get("grace").unwrap_or_default()).ok_or(PageError::NotFound)?;
    if seconds == 0 && form.get("confirmed").is_none() {
        let key = account.key(id).await?.ok_or(PageError::NotFound)?;
        return context.page(&ConfirmPage {
            layout: context.layout("Roll API key", Section::Keys),
            question: format!("Roll the API key “{}” ({}…) immediately?", key.name, key.prefix),
            consequence: "Requests with this key are refused from now on, until your servers use the new one.",
            button: "Roll key",
            action: format!("{PATH}/{}/roll", key.id),
            fields: &[("grace", "0"), ("confirmed", "1")],
            cancel: format!("{PATH}/{}", key.id),
        });
    }
    let rolled = account.roll_key(id, account.now() + seconds).await?;
    let (id, key) = rolled.ok_or(PageError::NotFound)?;
    Ok(redirect_to_new(context, &id, &key))
}

pub(crate) async fn set_disabled(context: &Context<'_>, id: &str, disabled: bool) -> PageResult {
    let found = context.owner()?.set_key_disabled(id, disabled).await?;
    redirect_if_found(found, PATH, if disabled { "key-disabled" } else { "key-enabled" })
}

/// Asks before a key is disabled or deleted.
pub(crate) async fn confirm(context: &Context<'_>, id: &str, action: &str) -> PageResult {
    let (button, consequence) = match action {
        "disable" => ("Disable key", "Requests with it are refused immediately. You can enable it again."),
        _ => ("Delete key", "Requests with it are refused immediately. This cannot be undone."),
    };
    let verb = button.trim_end_matches(" key");
    let key = context.owner()?.key(id).await?.ok_or(PageError::NotFound)?;
    context.page(&ConfirmPage {
        layout: context.layout(format!("{verb} API key"), Section::Keys),
        question: format!("{verb} the API key “{}” ({}…)?", key.name, key.prefix),
        consequence,
        button,
        action: format!("{PATH}/{}/{action}", key.id),
        fields: &[],
        cancel: PATH.to_owned(),
    })
}

pub(crate) async fn delete(context: &Context<'_>, id: &str) -> PageResult {
    redirect_if_found(context.owner()?.delete_key(id).await?, PATH, "key-deleted")
}

async fn show(context: &Context<'_>, name: Field, expires: Field) -> PageResult {
    let account = context.account()?;
    let keys = account.keys().await?;
    let created = context.once.as_ref().and_then(Once::parts);
    let new = created.and_then(|(id, key)| {
        let name = keys.iter().find(|known| known.id.as_str() == id)?.name.clone();
        Some(NewKey { name, key: key.to_owned(), base_url: context.head.base_url() })
    });
    let now = account.now();
    let parts = account.usage_by_key(chart::first_day(now)).await?;
    let attempts = parts.into_iter().map(|part| (part.id, part.attempts)).collect();
    let layout = context.layout("API Keys", Section::Keys);
    context.page(&KeysPage { layout, keys, new, name, expires, now, attempts })
}

async fn show_key(
    context: &Context<'_>,
    id: &str,
    name: Option<Field>,
    expires: Option<Field>,
) -> PageResult {
    let account = context.account()?;
    let key = account.key(id).await?.ok_or(PageError::NotFound)?;
    let now = account.now();
    let days = account.days_of_key(id, chart::first_day(now)).await?;
    context.page(&KeyPage {
        layout: context.layout(&key.name, Section::Keys),
        state: key.state(now),
        chart: Chart::new(chart::last_days(now, DAYS_SHOWN, &days)),
        name: name.unwrap_or_else(|| Field::valid(&key.name)),
        expires: expires.unwrap_or_else(|| Field::valid(last_day(key.expires_at))),
        key,
    })
}
