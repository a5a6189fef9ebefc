//! The operator's page of the retention settings.

use platen_statements::retention::{Retention, parse_attempt_days, parse_audit_days, parse_versions};

use crate::{
    form::{Field, Form},
    pages::{
        ConfirmPage, Section,
        operator::{RetentionPage, due_text},
    },
    router::{
        context::{Context, redirect_with_notice},
        page_error::PageResult,
    },
};

const PATH: &str = "/dashboard/operator/retention";
/// Steps of pruning after a change. What is left is pruned by the triggers of later changes and renders.
const STEPS: u32 = 20;

pub(crate) async fn page(context: &Context<'_>) -> PageResult {
    show(context, None).await
}

/// The page with what was entered into its form.
pub(crate) async fn resume(context: &Context<'_>, form: &Form) -> PageResult {
    show(context, Some(entered(form).1)).await
}

/// Saves the settings. If they delete something, a page asks first what would be deleted.
pub(crate) async fn save(context: &Context<'_>, form: &Form) -> PageResult {
    let operator = context.operator()?;
    let (settings, fields) = entered(form);
    let Some(settings) = settings else { return Ok(show(context, Some(fields)).await?.with_status(422)) };
    let due = operator.due(&settings).await?;
    if !due.is_nothing() && form.get("confirmed") != Some("1") {
        let [versions, audit, attempts] = &fields;
        let consequence =
            format!("These settings delete {}, of all accounts. This cannot be undone.", due_text(&due));
        return context.page(&ConfirmPage {
            layout: context.layout("Change retention", Section::Operator),
            question: "Delete older records?".to_owned(),
            consequence: &consequence,
            button: "Save and delete",
            action: PATH.to_owned(),
            fields: &[
                ("versions", versions.value.as_str()),
                ("audit", audit.value.as_str()),
                ("attempts", attempts.value.as_str()),
                ("confirmed", "1"),
            ],
            cancel: PATH.to_owned(),
        });
    }
    operator.set_retention(&settings).await?;
    for _ in 0..STEPS {
        if !operator.prune().await? {
            break;
        }
    }
    Ok(redirect_with_notice(PATH, "retention-changed"))
}

/// The settings of the form, if all are valid, and its fields: versions, audit log, attempts.
fn entered(form: &Form) -> (Option<Retention>, [Field; 3]) {
    let [versions, audit, attempts] = ["versions", "audit", "attempts"].map(|name| form.text(name));
    let parsed = (parse_versions(&versions), parse_audit_days(&audit), parse_attempt_days(&attempts));
    let settings = match parsed {
        (Ok(versions), Ok(audit_days), Ok(attempt_days)) => {
            Some(Retention { versions, audit_days, attempt_days })
        }
        _ => None,
    };
    let fields = [
        Field::parsed(&versions, parsed.0),
        Field::parsed(&audit, parsed.1),
        Field::parsed(&attempts, parsed.2),
    ];
    (settings, fields)
}

async fn show(context: &Context<'_>, fields: Option<[Field; 3]>) -> PageResult {
    let operator = context.operator()?;
    let settings = operator.retention().await?;
    let due = operator.due(&settings).await?;
    let limit = |number: Option<u32>| Field::valid(number.map(|it| it.to_string()).unwrap_or_default());
    let stored = [limit(settings.versions), limit(settings.audit_days), limit(Some(settings.attempt_days))];
    let layout = context.layout("Retention", Section::Operator);
    context.page(&RetentionPage { layout, due, fields: fields.unwrap_or(stored) })
}
