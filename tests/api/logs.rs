//! The log of the server.

use nix::sys::signal::Signal;

use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    let case = Case::own_server("logs/with_the_json_format_every_line_is_one_object", json_lines);
    vec![case.not_on_spin("a flag of platen up")]
}

async fn json_lines(stage: Stage) -> Result<()> {
    let farm = StandInFarm::start(FARM_TOKEN).await?;
    let mut options = Options::with_farm(stage.deployment, farm.url());
    options.arguments.extend(["--log-format".to_owned(), "json".to_owned()]);
    let mut app = stage.start(&options).await?;
    let (_, target) = app.account(Quota::Unlimited).await?;
    let rendered = target.minimal().send().await?;
    rendered.file("image/png")?;
    let refused = target.render(&json!({ "html": 1 })).send().await?;
    app.process.signal(Signal::SIGTERM)?;
    app.process.wait_for(|log| log.contains("\"stopped\"").then_some(())).await?;
    ensure!(app.process.ended().await?.success(), "{}", app.process.log());

    let log = app.process.log();
    let lines = log.lines().map(|line| serde_json::from_str(line).with_context(|| line.to_owned()));
    let lines = lines.collect::<Result<Vec<Value>>>()?;
    for line in &lines {
        let has_text = |name: &&str| line[*name].as_str().is_some_and(|text| !text.is_empty());
        ensure!(["timestamp", "level", "message"].iter().all(has_text), "{line}");
    }
    for (answer, status) in [(&rendered, 200), (&refused, 400)] {
        let id = answer.header(wire::REQUEST_ID)?;
        let found = lines.iter().find(|line| line["request_id"] == id && line["component"] == "edge");
        let line = found.with_context(|| format!("no line of the edge about {id} in\n{log}"))?;
        ensure!(line["status"] == status && line["endpoint"] == "render" && line["ms"].is_u64(), "{line}");
    }
    Ok(())
}
