//! The operator's pages: accounts, their users, operators.

use platen_shared::{email::Email, name::Name};
use platen_statements::{
    invites::{InviteRefusal, InviteTarget},
    limits::NewLimits,
    members::{MemberChange, Role},
};

use super::{
    invites::{self, INVITE_SECONDS, entered_role, redirect_to_link},
    people,
};
use crate::{
    form::{Field, Form},
    pages::{
        ConfirmPage, Section,
        operator::{AccountPage, AccountsPage, parse_limit, parse_state},
        paging::{PAGE_ROWS, Paging},
    },
    router::{
        context::{Context, redirect_if_found, redirect_with_notice},
        page_error::{PageError, PageResult},
    },
    search::Search,
};

const PATH: &str = "/dashboard/operator";

/// The fields of [`NewLimits`] in the form.
const LIMIT_FIELDS: [&str; 2] = ["requests_per_minute", "concurrency"];

fn account_path(id: &str) -> String {
    format!("{PATH}/accounts/{id}")
}

pub(crate) async fn page(context: &Context<'_>) -> PageResult {
    show_accounts(context, Field::default(), Field::default(), None).await
}

/// The page with what was entered into its form.
pub(crate) async fn resume(context: &Context<'_>, form: &Form) -> PageResult {
    show_accounts(context, Field::valid(form.text("name")), Field::valid(form.text("quota")), None).await
}

/// The page of an account with what was entered into one of its forms.
pub(crate) async fn resume_account(
    context: &Context<'_>,
    id: &str,
    form_name: &str,
    form: &Form,
) -> PageResult {
    let mut forms = AccountForms::default();
    match form_name {
        "name" => forms.name = Some(Field::valid(form.text("name"))),
        "quota" => forms.quota = Some(Field::valid(form.text("quota"))),
        "limits" => {
            let [requests_per_minute, concurrency] = LIMIT_FIELDS.map(|name| Field::valid(form.text(name)));
            forms.limits = Some((requests_per_minute, concurrency));
        }
        _ => forms.email = Field::valid(form.text("email")),
    }
    show_account(context, id, forms).await
}

pub(crate) async fn create(context: &Context<'_>, form: &Form) -> PageResult {
    let operator = context.operator()?;
    let (name_text, quota_text) = (form.text("name"), form.text("quota"));
    let (name, quota) = match (Name::parse(&name_text), parse_limit(&quota_text, 0)) {
        (Ok(name), Ok(quota)) => (name, quota),
        (name, quota) => {
            let (name, quota) = (Field::parsed(&name_text, name), Field::parsed(&quota_text, quota));
            return Ok(show_accounts(context, name, quota, None).await?.with_status(422));
        }
    };
    let refusal = match operator.create_account(&name, quota).await? {
        Ok(id) => return Ok(redirect_with_notice(&account_path(id.as_str()), "account-created")),
        Err(refusal) => refusal,
    };
    let name = Field::invalid(name_text, &refusal);
    Ok(show_accounts(context, name, Field::valid(quota_text), None).await?.with_status(422))
}

pub(crate) async fn account(context: &Context<'_>, id: &str) -> PageResult {
    show_account(context, id, AccountForms::default()).await
}

pub(crate) async fn rename(context: &Context<'_>, id: &str, form: &Form) -> PageResult {
    let operator = context.operator()?;
    let entered = form.text("name");
    let name = match Name::parse(&entered) {
        Ok(name) => match operator.rename_account(id, &name).await? {
            Ok(found) => return redirect_if_found(found, &account_path(id), "account-renamed"),
            Err(refusal) => Field::invalid(entered, &refusal),
        },
        Err(error) => Field::invalid(entered, &error),
    };
    let forms = AccountForms { name: Some(name), ..Default::default() };
    Ok(show_account(context, id, forms).await?.with_status(422))
}

pub(crate) async fn set_quota(context: &Context<'_>, id: &str, form: &Form) -> PageResult {
    let operator = context.operator()?;
    let entered = form.text("quota");
    match parse_limit(&entered, 0) {
        Ok(quota) => {
            redirect_if_found(operator.set_quota(id, quota).await?, &account_path(id), "quota-changed")
        }
        Err(error) => {
            let forms = AccountForms { quota: Some(Field::invalid(entered, &error)), ..Default::default() };
            Ok(show_account(context, id, forms).await?.with_status(422))
        }
    }
}

/// A field that the form does not have keeps its limit.
pub(crate) async fn set_limits(context: &Context<'_>, id: &str, form: &Form) -> PageResult {
    let operator = context.operator()?;
    let [minute, concurrency] =
        LIMIT_FIELDS.map(|name| form.get(name).map(|text| parse_limit(text, 1)).transpose());
    let limits = match (minute, concurrency) {
        (Ok(requests_per_minute), Ok(concurrency)) => NewLimits { requests_per_minute, concurrency },
        (minute, concurrency) => {
            let [minute_text, concurrency_text] = LIMIT_FIELDS.map(|name| form.text(name));
            let fields = (Field::parsed(&minute_text, minute), Field::parsed(&concurrency_text, concurrency));
            let forms = AccountForms { limits: Some(fields), ..Default::default() };
            return Ok(show_account(context, id, forms).await?.with_status(422));
        }
    };
    redirect_if_found(operator.set_limits(id, limits).await?, &account_path(id), "limits-changed")
}

pub(crate) async fn confirm_disable(context: &Context<'_>, id: &str) -> PageResult {
    let account = context.operator()?.account(id).await?.ok_or(PageError::NotFound)?;
    let path = account_path(id);
    context.page(&ConfirmPage {
        layout: context.layout("Disable account", Section::Operator),
        question: format!("Disable the account “{}”?", account.name),
        consequence: "All of its API keys are refused immediately. Its members can still sign in. You can enable \
                      it again.",
        button: "Disable account",
        action: format!("{path}/disable"),
        fields: &[],
        cancel: path,
    })
}

pub(crate) async fn set_disabled(context: &Context<'_>, id: &str, disabled: bool) -> PageResult {
    let found = context.operator()?.set_account_disabled(id, disabled).await?;
    let code = if disabled { "account-disabled" } else { "account-enabled" };
    redirect_if_found(found, &account_path(id), code)
}

pub(crate) async fn confirm_delete(context: &Context<'_>, id: &str) -> PageResult {
    let operator = context.operator()?;
    let account = operator.account(id).await?.ok_or(PageError::NotFound)?;
    let contents = operator.account_contents(id).await?;
    let path = account_path(id);
    context.page(&ConfirmPage {
        layout: context.layout("Delete account", Section::Operator),
        question: format!("Delete the account “{}” with {contents}?", account.name),
        consequence: "Its API keys are refused and its members signed out immediately. Operators stay. This cannot be \
                      undone.",
        button: "Delete account",
        action: format!("{path}/delete"),
        fields: &[],
        cancel: path,
    })
}

pub(crate) async fn delete(context: &Context<'_>, id: &str) -> PageResult {
    redirect_if_found(context.operator()?.delete_account(id).await?, PATH, "account-deleted")
}

pub(crate) async fn switch_to(context: &Context<'_>, id: &str) -> PageResult {
    redirect_if_found(context.operator()?.join(id).await?, "/dashboard/keys", "account-switched")
}

pub(crate) async fn leave(context: &Context<'_>) -> PageResult {
    context.operator()?.leave().await?;
    Ok(redirect_with_notice(PATH, "account-left"))
}

pub(crate) async fn invite(context: &Context<'_>, id: &str, form: &Form) -> PageResult {
    let operator = context.operator()?;
    let entered = form.text("email");
    let (role, is_operator) = (entered_role(form), form.get("operator") == Some("1"));
    let target = InviteTarget { account: Some(id), role, operator: is_operator };
    let email = match Email::parse(&entered) {
        Ok(email) => match operator.invite(&email, target, INVITE_SECONDS).await? {
            Ok(invite) => {
                return Ok(redirect_to_link(context, &account_path(id), id, &invite.token));
            }
            Err(InviteRefusal::NoSuchAccount | InviteRefusal::NoTarget) => return Err(PageError::NotFound),
            Err(InviteRefusal::OtherAccount) => {
                Field::invalid(entered, "The user is a member of another account. Remove them there first")
            }
        },
        Err(error) => Field::invalid(entered, &error),
    };
    Ok(show_account(context, id, AccountForms { email, ..Default::default() }).await?.with_status(422))
}

pub(crate) async fn set_role(context: &Context<'_>, account: &str, id: &str, form: &Form) -> PageResult {
    let operator = context.operator()?;
    let role = form.get("role").and_then(Role::parse).ok_or(PageError::NotFound)?;
    let user = operator.users(account).await?.into_iter().find(|user| user.id.as_str() == id);
    let change = operator.set_role(account, &user.ok_or(PageError::NotFound)?, role).await?;
    answer(context, Some(account), change, "role-changed").await
}

/// Asks whether to remove a user of an account, or without an account an operator.
pub(crate) async fn confirm_removal(context: &Context<'_>, account: Option<&str>, id: &str) -> PageResult {
    let operator = context.operator()?;
    let (users, path) = match account {
        Some(account) => (operator.users(account).await?, account_path(account)),
        None => (operator.operators().await?, PATH.to_owned()),
    };
    let user = users.into_iter().find(|user| user.id.as_str() == id);
    let people = format!("{path}/people");
    context.page(&people::confirmation(context, user, (&people, &path), Section::Operator)?)
}

/// Removes a user of an account, or without an account an operator.
pub(crate) async fn remove(context: &Context<'_>, account: Option<&str>, user: &str) -> PageResult {
    let operator = context.operator()?;
    let change = match account {
        Some(account) => operator.remove_user(account, user).await?,
        None => operator.remove_operator(user).await?,
    };
    answer(context, account, change, "user-removed").await
}

/// The page after a change to a user.
async fn answer(
    context: &Context<'_>,
    account: Option<&str>,
    change: MemberChange,
    notice: &'static str,
) -> PageResult {
    if change == MemberChange::Done {
        let path = account.map_or_else(|| PATH.to_owned(), account_path);
        return Ok(redirect_with_notice(&path, notice));
    }
    let warning = Some(people::refusal(change)?);
    let page = match account {
        Some(account) => {
            show_account(context, account, AccountForms { warning, ..Default::default() }).await?
        }
        None => show_accounts(context, Field::default(), Field::default(), warning).await?,
    };
    Ok(page.with_status(409))
}

/// The state of the forms on an account's page. `None` shows the stored value.
#[derive(Default)]
struct AccountForms {
    name: Option<Field>,
    quota: Option<Field>,
    /// Requests in a minute, and at once.
    limits: Option<(Field, Field)>,
    email: Field,
    /// Why a change was refused.
    warning: Option<&'static str>,
}

async fn show_account(context: &Context<'_>, id: &str, forms: AccountForms) -> PageResult {
    let operator = context.operator()?;
    let account = operator.account(id).await?.ok_or(PageError::NotFound)?;
    let members = operator.users(id).await?;
    let number = |limit: Option<u64>| limit.map(|limit| limit.to_string()).unwrap_or_default();
    let (requests_per_minute, concurrency) = forms.limits.unwrap_or_else(|| {
        (Field::valid(number(account.requests_per_minute)), Field::valid(number(account.concurrency)))
    });
    let mut layout = context.layout(&account.name, Section::Operator);
    layout.warning = forms.warning.or(layout.warning);
    context.page(&AccountPage {
        layout,
        name: forms.name.unwrap_or_else(|| Field::valid(&account.name)),
        quota: forms.quota.unwrap_or_else(|| Field::valid(number(account.quota))),
        requests_per_minute,
        concurrency,
        email: forms.email,
        link: invites::created(context, |account| account == id).await?,
        invites: operator.pending_invites_of(id).await?,
        account,
        members,
        user: context.current_user()?.clone(),
    })
}

async fn show_accounts(
    context: &Context<'_>,
    name: Field,
    quota: Field,
    warning: Option<&'static str>,
) -> PageResult {
    let operator = context.operator()?;
    let query = &context.head.query;
    let (search, state) = (query.get("q").unwrap_or_default().trim(), query.get("state").unwrap_or_default());
    let disabled = parse_state(state);
    let parameters = [("q", search), ("state", if disabled.is_some() { state } else { "" })];
    let paging = |rows| Paging::new(query.get("page"), rows, PATH, &parameters);
    let (paging, ids) = if let Some(words) = Search::of(search) {
        // SQLite compares letters of ASCII only without regard to case.
        let mut found = operator.account_names(disabled).await?;
        found.retain(|it| words.finds(&[it.id.as_str(), &it.name, &it.emails]));
        let paging = paging(found.len() as u64);
        let ids = paging.slice_of(found).into_iter().map(|it| it.id).collect();
        (paging, ids)
    } else {
        let paging = paging(operator.count_accounts(disabled).await?);
        let ids = operator.account_ids(disabled, PAGE_ROWS, paging.offset()).await?;
        (paging, ids)
    };
    let mut layout = context.layout("Accounts", Section::Operator);
    layout.warning = warning.or(layout.warning);
    context.page(&AccountsPage {
        layout,
        search: search.to_owned(),
        disabled,
        accounts: operator.accounts_of(&ids).await?,
        paging,
        operators: operator.operators().await?,
        user: context.current_user()?.user.clone(),
        name,
        quota,
    })
}
