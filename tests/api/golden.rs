//! The golden cases: invalid bodies and their messages, valid bodies and their jobs.
//!
//! A case with a saved template runs on each deployment. All others run once on each platform: an invalid body is
//! refused before the claim, and the claim of a valid one contains nothing of its body.
//! `invalid_bodies_are_not_counted` sends all invalid bodies on each deployment.

use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow, ensure};
use platen_tests::{
    case::Case,
    client::Target,
    farm,
    golden::{self, Case as _, Invalid, Named, Valid},
    operator::Quota,
    suite::{Stage, TEMPLATE_NAME},
};

pub(crate) fn cases() -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for (name, case) in golden::invalid()? {
        let name = format!("golden/invalid/{name}");
        cases.push(match case {
            Err(error) => broken(name, &error),
            Ok(case) => {
                let needs_template = case.input().needs_template();
                let case = Arc::new(case);
                let run = move |stage| invalid(stage, Arc::clone(&case));
                if needs_template { Case::any_template(name, run) } else { Case::any_server(name, run) }
            }
        });
    }
    for (name, case) in golden::valid()? {
        let name = format!("golden/valid/{name}");
        cases.push(match case {
            Err(error) => broken(name, &error),
            Ok(case) => {
                let case = Arc::new(case);
                Case::own_server(name, move |stage| valid(stage, Arc::clone(&case)))
            }
        });
    }
    cases.push(Case::any_database("golden/invalid_bodies_are_not_counted", invalid_bodies_are_not_counted));
    Ok(cases)
}

/// A failing case for a file that is not a valid case.
fn broken(name: String, error: &anyhow::Error) -> Case {
    let reason = format!("{error:#}");
    Case::files(name, move |_| {
        let reason = reason.clone();
        async move { Err(anyhow!(reason)) }
    })
}

async fn invalid(stage: Stage, case: Arc<Invalid>) -> Result<()> {
    let target = stage.common().await?;
    send(&target, &case).await.with_context(|| case.about.clone())
}

async fn send(target: &Target, case: &Invalid) -> Result<()> {
    let body = case.input().bytes(target.template_id.as_deref().unwrap_or_default());
    target.post(case.input().endpoint(), body).send().await?.error(case.status, &case.error)
}

async fn valid(stage: Stage, case: Arc<Valid>) -> Result<()> {
    let stand_in = stage.stand_in().await?;
    let target = &stand_in.common;
    let id = format!("golden-{:016x}", rand::random::<u64>());
    let body = case.input().bytes(target.template_id.as_deref().unwrap_or_default());
    let answer = target.post(case.input().endpoint(), body).request_id(&id).send().await?;
    let job = case.job(&stand_in.account.id)?;
    ensure!(answer.file(job.options.output.format().content_type())? == farm::FILE, "{}", answer.summary());
    ensure!(answer.file_name()? == case.file_name, "the file name is {}", answer.file_name()?);
    let received = stand_in.farm.received_as(&id)?.job;
    ensure!(received == job, "{}\nexpected {job:?}\nreceived {received:?}", case.about);
    Ok(())
}

/// Sends every invalid body with one account: none is counted, and none reaches the farm.
async fn invalid_bodies_are_not_counted(stage: Stage) -> Result<()> {
    let service = stage.service().await?;
    let account = service.operator.account(Quota::Of(1)).await?;
    let html = std::fs::read_to_string(platen_tests::settings::crate_dir().join("fixtures/template.html"))?;
    let template_id = service.operator.template(&account.id, TEMPLATE_NAME, &html).await?;
    let target = Target { template_id: Some(template_id), ..service.target(&account) };
    let cases: Vec<Named<Invalid>> = golden::invalid()?;
    for (name, case) in cases {
        send(&target, &case?).await.context(name)?;
    }
    ensure!(service.operator.attempts(&account.id).await? == 0, "an invalid body was counted");
    stage.no_job_was_received(&account).await?;
    Ok(())
}
