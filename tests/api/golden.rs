//! The golden cases: invalid bodies and their messages, valid bodies and their jobs.
//!
//! Valid bodies run once on each platform: the claim of one contains nothing of its body. The component refuses invalid ones
//! before it uses anything else of its platform than the body, so they run on the first deployment only, and
//! `invalid_bodies_are_not_counted` sends one of each kind on each platform.

use std::collections::HashSet;

use platen_harness::{
    farm,
    golden::{self, Golden},
    suite::TEMPLATE_NAME,
};

use crate::prelude::*;

pub(crate) fn cases() -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for golden in golden::invalid()? {
        let (name, needs_template) = (format!("golden/invalid/{}", golden.name), golden.needs_template());
        let golden = Arc::new(golden);
        let run = move |stage| invalid(stage, Arc::clone(&golden));
        cases.push(if needs_template { Case::any_template(name, run) } else { Case::any_server(name, run) });
    }
    for golden in golden::valid()? {
        let (name, golden) = (format!("golden/valid/{}", golden.name), Arc::new(golden));
        cases.push(Case::own_server(name, move |stage| valid(stage, Arc::clone(&golden))));
    }
    cases.push(Case::any_database("golden/invalid_bodies_are_not_counted", invalid_bodies_are_not_counted));
    Ok(cases)
}

async fn invalid(stage: Stage, golden: Arc<Golden>) -> Result<()> {
    send(&stage.common().await?, &golden).await
}

async fn send(target: &Target, golden: &Golden) -> Result<()> {
    let body = golden.bytes(target.template_id.as_deref().unwrap_or_default());
    let answer = target.post(&golden.endpoint, body).send().await?;
    answer.error(golden.status, &golden.error).with_context(|| golden.about.clone())
}

async fn valid(stage: Stage, golden: Arc<Golden>) -> Result<()> {
    let stand_in = stage.stand_in().await?;
    let target = &stand_in.common;
    let id = format!("golden-{:016x}", rand::random::<u64>());
    let body = golden.bytes(target.template_id.as_deref().unwrap_or_default());
    let answer = target.post(&golden.endpoint, body).request_id(&id).send().await?;
    let job = golden.job(&stand_in.account.id)?;
    ensure!(answer.file(job.options.output.format().content_type())? == farm::FILE, "{}", answer.summary());
    ensure!(answer.file_name()? == golden.file_name, "the file name is {}", answer.file_name()?);
    let received = stand_in.farm.received_as(&id)?.job;
    ensure!(received == job, "{}\nexpected {job:?}\nreceived {received:?}", golden.about);
    Ok(())
}

/// Sends an invalid body of each kind, which is the first word of its name, with one account: none is counted, and none
/// reaches the farm.
async fn invalid_bodies_are_not_counted(stage: Stage) -> Result<()> {
    let (service, account) = stage.account(Quota::Of(1)).await?;
    let html = std::fs::read_to_string(platen_harness::settings::tests_dir().join("fixtures/template.html"))?;
    let template_id = service.operator.template(&account.id, TEMPLATE_NAME, &html).await?;
    let target = Target { template_id: Some(template_id), ..service.target(&account) };
    let mut kinds = HashSet::new();
    for golden in golden::invalid()? {
        if kinds.insert(golden.name.split('-').next().map(str::to_owned)) {
            send(&target, &golden).await.context(golden.name)?;
        }
    }
    ensure!(service.operator.attempts(&account.id).await? == 0, "an invalid body was counted");
    stage.no_job_was_received(&account).await?;
    Ok(())
}
