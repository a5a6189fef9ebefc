//! Golden cases of values of templates in Jinja: each line of `golden/fill.jsonl` is a template, a request, and the text of its file or
//! its error, over the API and with a farm that fills.

use anyhow::bail;
use platen_harness::{
    client::ErrorBody,
    golden::{self, Filled},
};

use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![Case::any_database("jinja/golden_values", golden_values)]
}

fn check(filled: &Filled, answer: &Answer) -> Result<()> {
    if let Some(text) = &filled.text {
        let found = Pdf::parse(answer.file("application/pdf")?)?.text()?;
        ensure!(found.trim() == text, "the file says {found:?}, not {text:?}");
        return Ok(());
    }
    answer.error(filled.status, filled.error.as_deref().context("a text or an error")?)?;
    let code = ErrorBody::read(answer.status, &answer.body)?.code;
    let is_of_filling = filled.status == 422 || filled.error.as_deref().is_some_and(|it| it.contains("line"));
    let expected = if is_of_filling { "template_failed" } else { "invalid_field" };
    ensure!(code.as_deref() == Some(expected), "the code is {code:?}");
    Ok(())
}

async fn golden_values(stage: Stage) -> Result<()> {
    let service = stage.real_service().await?;
    let account = service.operator.account(Quota::Of(1000)).await?;
    let target = service.target(&account);
    let (mut counted, mut wrong) = (0, Vec::new());
    for filled in golden::filled()? {
        let id = service.operator.jinja_template(&account.id, &filled.name, &filled.template).await?;
        let answer = target.post(TEMPLATE, filled.body(&id)).send().await?;
        counted += u64::from(filled.is_counted());
        if let Err(error) = check(&filled, &answer) {
            wrong.push(format!("{}: {error:#}", filled.name));
        }
        let attempts = service.operator.attempts(&account.id).await?;
        if attempts != counted {
            wrong.push(format!("{}: {attempts} attempts, not {counted}", filled.name));
            counted = attempts;
        }
    }
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    Ok(())
}
