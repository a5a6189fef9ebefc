//! Limits as the operator's commands set and show them.

use super::{CONCURRENCY_FLAG, PER_MINUTE_FLAG};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![Case::any_database("account_limits/commands", commands)]
}

async fn commands(stage: Stage) -> Result<()> {
    let operator = &stage.service().await?.operator;
    let account = operator.account(Quota::Of(1)).await?;
    let limits =
        |arguments: &[&str]| operator.output(&[&["account", "limits", &account.id], arguments].concat());
    for bad in ["0", "4294967296", "unlimited"] {
        for flag in [PER_MINUTE_FLAG, CONCURRENCY_FLAG] {
            let output = limits(&[&format!("{flag}={bad}")])?;
            let text = String::from_utf8_lossy(&output.stderr);
            ensure!(!output.status.success() && text.contains("whole number from 1"), "{flag} {bad}: {text}");
        }
    }
    ensure!(!limits(&[])?.status.success(), "a change without a limit");
    ensure!(!operator.output(&["account", "limits", "acc_none", CONCURRENCY_FLAG, "1"])?.status.success());
    let listed = async || -> Result<serde_json::Value> {
        let list = operator.run(&["account", "list"]).await?;
        let found = list.as_array().and_then(|list| list.iter().find(|it| it["id"] == account.id.as_str()));
        let found = found.context("the account")?;
        Ok(json!([found["requests_per_minute"], found["concurrency"]]))
    };
    ensure!(listed().await? == json!([null, null]));
    for (arguments, expected) in [
        (&[PER_MINUTE_FLAG, "60"][..], json!([60, null])),
        (&[CONCURRENCY_FLAG, "5"], json!([60, 5])),
        (&[PER_MINUTE_FLAG, "none", CONCURRENCY_FLAG, "4294967295"], json!([null, 4_294_967_295_u32])),
        (&[CONCURRENCY_FLAG, "none"], json!([null, null])),
    ] {
        let output = limits(arguments)?;
        ensure!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        ensure!(listed().await? == expected, "{arguments:?}: {}", listed().await?);
    }
    Ok(())
}
