//! The operator's pages.

use platen_shared::{email::Email, name::Name};

use crate::{
    component::{
        answer::Answer,
        context::{Context, done},
        page_error::PageError,
    },
    form::{Field, Form},
    pages::{
        Confirm, Section,
        operator::{Accounts, Audit, OneAccount, Person, parse_quota},
    },
    store::operator::Invited,
};

const PAGE: &str = "/dashboard/operator";
const TAKEN: &str = "There is an account of this name already";
/// Entries of the log on a page.
const LISTED: u32 = 100;

pub(in crate::component) async fn page(c: &Context<'_>) -> Result<Answer, PageError> {
    show_all(c, Field::default(), Field::default()).await
}

pub(in crate::component) async fn create(c: &Context<'_>, form: &Form) -> Result<Answer, PageError> {
    let operator = c.operator()?;
    let (typed, quota_typed) = (form.text("name"), form.text("quota"));
    let (name, quota) = match (Name::parse(&typed), parse_quota(&quota_typed)) {
        (Ok(name), Ok(quota)) => (name, quota),
        (name, quota) => {
            let name = name.map_or_else(|error| Field::wrong(&typed, &error), |_| Field::of(&typed));
            let quota =
                quota.map_or_else(|error| Field::wrong(&quota_typed, &error), |_| Field::of(&quota_typed));
            return Ok(show_all(c, name, quota).await?.status(422));
        }
    };
    match operator.create_account(&name, quota).await? {
        Some(id) => Ok(done(&format!("{PAGE}/accounts/{id}"), "account-created")),
        None => Ok(show_all(c, Field::wrong(typed, TAKEN), Field::of(quota_typed)).await?.status(422)),
    }
}

pub(in crate::component) async fn account(c: &Context<'_>, id: &str) -> Result<Answer, PageError> {
    show(c, id, Shown::default()).await
}

pub(in crate::component) async fn rename(
    c: &Context<'_>,
    id: &str,
    form: &Form,
) -> Result<Answer, PageError> {
    let operator = c.operator()?;
    operator.account(id).await?.ok_or(PageError::NotFound)?;
    let typed = form.text("name");
    let wrong = match Name::parse(&typed) {
        Ok(name) if operator.rename_account(id, &name).await? => {
            return Ok(done(&format!("{PAGE}/accounts/{id}"), "account-renamed"));
        }
        Ok(_) => Field::wrong(typed, TAKEN),
        Err(error) => Field::wrong(typed, &error),
    };
    Ok(show(c, id, Shown { name: Some(wrong), ..Shown::default() }).await?.status(422))
}

pub(in crate::component) async fn set_quota(
    c: &Context<'_>,
    id: &str,
    form: &Form,
) -> Result<Answer, PageError> {
    let operator = c.operator()?;
    operator.account(id).await?.ok_or(PageError::NotFound)?;
    let typed = form.text("quota");
    match parse_quota(&typed) {
        Ok(quota) => {
            operator.set_quota(id, quota).await?;
            Ok(done(&format!("{PAGE}/accounts/{id}"), "quota-changed"))
        }
        Err(error) => {
            let shown = Shown { quota: Some(Field::wrong(typed, &error)), ..Shown::default() };
            Ok(show(c, id, shown).await?.status(422))
        }
    }
}

pub(in crate::component) async fn set_disabled(
    c: &Context<'_>,
    id: &str,
    disabled: bool,
) -> Result<Answer, PageError> {
    let operator = c.operator()?;
    operator.account(id).await?.ok_or(PageError::NotFound)?;
    operator.set_account_disabled(id, disabled).await?;
    let word = if disabled { "account-disabled" } else { "account-enabled" };
    Ok(done(&format!("{PAGE}/accounts/{id}"), word))
}

pub(in crate::component) async fn join(c: &Context<'_>, id: &str) -> Result<Answer, PageError> {
    if c.operator()?.join(id).await? {
        Ok(done("/dashboard/keys", "account-joined"))
    } else {
        Err(PageError::NotFound)
    }
}

/// The link is shown in the answer itself: nowhere is it kept to be shown after a redirect.
pub(in crate::component) async fn invite(
    c: &Context<'_>,
    id: &str,
    form: &Form,
) -> Result<Answer, PageError> {
    let operator = c.operator()?;
    let typed = form.text("email");
    let wrong = match Email::parse(&typed) {
        Ok(email) => match operator.invite(id, &email, form.get("operator") == Some("1")).await? {
            Invited::Done(token) => {
                let link = format!("{}/dashboard/invite/{}", c.head.base_url(), token.expose());
                let shown = Shown { email: Field::of(email.as_str()), link: Some(link), ..Shown::default() };
                return show(c, id, shown).await;
            }
            Invited::NoSuchAccount => return Err(PageError::NotFound),
            Invited::OtherAccount => Field::wrong(typed, "They belong to another account already"),
        },
        Err(error) => Field::wrong(typed, &error),
    };
    Ok(show(c, id, Shown { email: wrong, ..Shown::default() }).await?.status(422))
}

pub(in crate::component) async fn ask_remove(
    c: &Context<'_>,
    id: &str,
    user: &str,
) -> Result<Answer, PageError> {
    let people = c.operator()?.people(id).await?;
    confirm_removal(c, people, user, format!("{PAGE}/accounts/{id}"))
}

pub(in crate::component) async fn ask_remove_operator(
    c: &Context<'_>,
    user: &str,
) -> Result<Answer, PageError> {
    let people = c.operator()?.operators().await?;
    confirm_removal(c, people, user, PAGE.to_owned())
}

fn confirm_removal(
    c: &Context<'_>,
    people: Vec<Person>,
    user: &str,
    page: String,
) -> Result<Answer, PageError> {
    let person = people.into_iter().find(|person| person.id == user && !person.is_you);
    let person = person.ok_or(PageError::NotFound)?;
    c.page(&Confirm {
        layout: c.layout("Remove a person", Section::Operator),
        question: format!("Remove {}?", person.email),
        consequence: "They are signed out at once and cannot sign in any more. What they made stays.",
        button: "Remove",
        action: format!("{page}/people/{}/remove", person.id),
        back: page,
    })
}

pub(in crate::component) async fn remove_operator(c: &Context<'_>, user: &str) -> Result<Answer, PageError> {
    if c.operator()?.remove_operator(user).await? {
        Ok(done(PAGE, "person-removed"))
    } else {
        Err(PageError::NotFound)
    }
}

pub(in crate::component) async fn remove_person(
    c: &Context<'_>,
    id: &str,
    user: &str,
) -> Result<Answer, PageError> {
    if c.operator()?.remove_user(id, user).await? {
        Ok(done(&format!("{PAGE}/accounts/{id}"), "person-removed"))
    } else {
        Err(PageError::NotFound)
    }
}

pub(in crate::component) async fn audit(c: &Context<'_>) -> Result<Answer, PageError> {
    let before = c.head.query.get("before").and_then(|text| text.parse().ok());
    let mut entries = c.operator()?.log(before, LISTED + 1).await?;
    let more = entries.len() > LISTED as usize;
    entries.truncate(LISTED as usize);
    let next = entries.last().filter(|_| more).map(|last| last.id);
    c.page(&Audit { layout: c.layout("Audit log", Section::Operator), entries, next })
}

/// What an account's page shows besides the account as it is.
#[derive(Default)]
struct Shown {
    name: Option<Field>,
    quota: Option<Field>,
    email: Field,
    link: Option<String>,
}

async fn show(c: &Context<'_>, id: &str, shown: Shown) -> Result<Answer, PageError> {
    let operator = c.operator()?;
    let account = operator.account(id).await?.ok_or(PageError::NotFound)?;
    let people = operator.people(id).await?;
    let quota = account.quota.map(|quota| quota.to_string()).unwrap_or_default();
    let is_joined = c.current_user()?.works_in(id);
    c.page(&OneAccount {
        layout: c.layout(&account.name, Section::Operator),
        name: shown.name.unwrap_or_else(|| Field::of(&account.name)),
        quota: shown.quota.unwrap_or_else(|| Field::of(quota)),
        email: shown.email,
        link: shown.link,
        account,
        people,
        is_joined,
    })
}

async fn show_all(c: &Context<'_>, name: Field, quota: Field) -> Result<Answer, PageError> {
    let operator = c.operator()?;
    let (accounts, operators) = (operator.accounts().await?, operator.operators().await?);
    c.page(&Accounts { layout: c.layout("Accounts", Section::Operator), accounts, operators, name, quota })
}
