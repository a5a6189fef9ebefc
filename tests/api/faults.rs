//! Farms and databases that are down, slow, or send invalid answers: the status is correct, and nothing is rendered
//! without a recorded attempt.

use anyhow::bail;
use platen_harness::{
    farm::{self, Size, pattern_byte},
    latch::LatchWaiter,
    loopback::ClosedPort,
    site::{self, Reply, Site},
};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use crate::prelude::*;
use crate::{crash::NO_DISCONNECTS, database::Outage, farms::has_no_farm};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::own_server("faults/farm_down", farm_down),
        Case::own_server("faults/farm_slow", farm_slow),
        Case::own_server("faults/farm_stalls_within_a_file", farm_stalls),
        Case::own_server("faults/farm_sends_invalid_answers", invalid_answers),
        Case::own_server("faults/damaged_template", damaged_template),
        Case::own_server("faults/farm_closes_the_connection", farm_hangs_up),
        Case::own_server("faults/farm_closes_the_connection_within_a_file", farm_breaks_off),
        Case::own_server("faults/answer_without_a_caller", answer_without_caller),
        Case::own_server("faults/callers_that_hang_up_at_the_own_farm", hang_up_at_own_farm)
            .not_on_spin(NO_DISCONNECTS),
        Case::own_server("faults/callers_that_hang_up_during_the_claim", hang_up_during_claim)
            .not_on_spin(NO_DISCONNECTS),
        Case::own_server("faults/farm_restarts", farm_restarts),
        Case::own_server("faults/farm_with_another_token", farm_of_another_token),
    ]
}

/// One attempt of a new account, with this behaviour of the farm: the answer and the recorded attempts.
pub(crate) async fn attempt(stand_in: &StandIn, behaviour: Behaviour) -> Result<(Result<Answer>, u64)> {
    let account = stand_in.app.operator.account(Quota::Of(5)).await?;
    stand_in.farm.behave(&account.id, behaviour);
    let answer = stand_in.app.target(&account).minimal().send().await;
    Ok((answer, stand_in.app.operator.attempts(&account.id).await?))
}

async fn farm_down(stage: Stage) -> Result<()> {
    let farm = ClosedPort::hold()?;
    let app = stage.start(&Options::with_farm(stage.deployment, farm.url()?)).await?;
    has_no_farm(&app).await?;
    has_no_farm(&app).await
}

async fn farm_slow(stage: Stage) -> Result<()> {
    let stand_in = stage.start_stand_in(Some(3_000)).await?;
    let (answer, attempts) = attempt(&stand_in, Behaviour::Stall).await?;
    answer?.error(504, "The render did not finish in time")?;
    ensure!(attempts == 1, "{attempts} attempts were counted");
    let received = stand_in.farm.received_in_all();
    ensure!(received == 1, "the farm received {received} jobs");
    let (answer, _) = attempt(&stand_in, Behaviour::File).await?;
    answer?.file("image/png").context("the next render")?;
    Ok(())
}

async fn farm_stalls(stage: Stage) -> Result<()> {
    let stand_in = stage.start_stand_in(Some(3_000)).await?;
    let (answer, attempts) = attempt(&stand_in, Behaviour::StallAfter(300_000)).await?;
    if let Ok(answer) = answer {
        bail!("half a file was accepted as complete: {}", answer.summary());
    }
    ensure!(attempts == 1, "{attempts} attempts were counted");
    // A small file is read before the answer begins.
    let (answer, attempts) = attempt(&stand_in, Behaviour::StallAfter(1_000)).await?;
    answer?.error(504, "The render did not finish in time")?;
    ensure!(attempts == 1, "{attempts} attempts were counted for a small file");
    Ok(())
}

async fn invalid_answers(stage: Stage) -> Result<()> {
    let stand_in = stage.stand_in().await?;
    for (status, content_type, body) in [
        (500, "text/html", "<h1>Internal Server Error</h1> at /srv/farm.rs:12"),
        (502, "text/html", "<h1>Bad Gateway</h1>"),
        (200, "text/html", "<h1>Welcome to nginx!</h1>"),
        (200, "application/json", "{\"ok\":true}"),
        (204, "image/png", ""),
        (206, "image/png", "part"),
        (302, "text/html", ""),
        (404, "text/plain", "not found"),
        (422, "application/json", "{\"code\":\"no_such_code\"}"),
        (422, "application/json", "{\"error\":\"a text of the farm\"}"),
        (422, "application/json", "{"),
        (418, "image/png", "file"),
    ] {
        let (answer, attempts) =
            attempt(&stand_in, Behaviour::FarmAnswer(status, content_type, body)).await?;
        let what = format!("the farm answered {status} {content_type} {body:?}");
        answer?.error(502, "The renderer failed").with_context(|| what.clone())?;
        ensure!(attempts == 1, "{what}: {attempts} attempts");
    }
    Ok(())
}

async fn damaged_template(stage: Stage) -> Result<()> {
    let stand_in = stage.start_stand_in(None).await?;
    let account = stand_in.app.operator.account(Quota::Of(1)).await?;
    let template = stand_in.app.operator.template(&account.id, "t", "<p>x</p>").await?;
    let target = stand_in.app.target(&account);
    let body = json!({ "templateId": template });
    stand_in.app.execute("UPDATE templates SET packed_html = x'00ff00'").await?;
    for _ in 0..2 {
        let answer = target.render_template(&body).send().await?;
        answer.error(500, "Internal error")?;
        ensure!(answer.rate_limit()?.left == 1, "{}", answer.summary());
    }
    ensure!(stand_in.app.operator.attempts(&account.id).await? == 0, "it was counted");
    ensure!(stand_in.farm.received_from(&account.id).is_empty(), "it was rendered");
    target.renders().await
}

async fn farm_hangs_up(stage: Stage) -> Result<()> {
    let stand_in = stage.stand_in().await?;
    let (answer, attempts) = attempt(&stand_in, Behaviour::HangUp).await?;
    answer?.error(502, "The renderer failed")?;
    ensure!(attempts == 1, "{attempts} attempts were counted");
    Ok(())
}

async fn farm_breaks_off(stage: Stage) -> Result<()> {
    let stand_in = stage.stand_in().await?;
    for (promised, sent) in
        [(Some(1_000_000), 300_000), (None, 300_000), (Some(1_000_000), 999_999), (None, 50)]
    {
        let account = stand_in.app.operator.account(Quota::Of(5)).await?;
        let latch = Latch::closed();
        stand_in.farm.behave(&account.id, Behaviour::BreakOff { promised, sent, until: latch.waiter() });
        let mut response = stand_in.app.target(&account).minimal().start().await?;
        ensure!(response.status() == 200, "{promised:?}, {sent}: {}", response.status());
        latch.open();
        let mut received = 0;
        let is_complete = loop {
            match response.chunk().await {
                Ok(Some(piece)) => {
                    let is_equal =
                        piece.iter().zip(received..).all(|(byte, offset)| *byte == pattern_byte(offset));
                    ensure!(is_equal, "the bytes are not those of the farm");
                    received += piece.len() as u64;
                }
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        ensure!(!is_complete, "{received} of {promised:?} bytes were accepted as a complete file");
        ensure!(received <= sent, "{received} bytes of {sent}");
        ensure!(stand_in.app.operator.attempts(&account.id).await? == 1, "the attempt was not counted");
    }
    // A small file is read before the answer begins.
    for sent in [0, 50, 99] {
        let behaviour = Behaviour::BreakOff { promised: Some(100), sent, until: LatchWaiter::ready() };
        let (answer, attempts) = attempt(&stand_in, behaviour).await?;
        answer?.error(502, "The renderer failed").with_context(|| format!("{sent} bytes"))?;
        ensure!(attempts == 1, "{attempts} attempts were counted");
    }
    // Before the first byte of the file it is a 502, or at least no complete answer.
    for promised in [Some(1_000_000), None] {
        let (answer, attempts) =
            attempt(&stand_in, Behaviour::BreakOff { promised, sent: 0, until: LatchWaiter::ready() })
                .await?;
        if let Ok(answer) = answer {
            answer.error(502, "The renderer failed")?;
        }
        ensure!(attempts == 1, "{attempts} attempts were counted");
    }
    Ok(())
}

/// The caller disconnects before the farm answers. A platform that does not tell the component shows it when it does
/// not take the answer.
async fn answer_without_caller(stage: Stage) -> Result<()> {
    let stand_in = stage.start_stand_in(None).await?;
    let account = stand_in.app.operator.account(Quota::Of(5)).await?;
    let latch = stand_in.farm.hold(&account.id);
    let mut caller = TcpStream::connect(stand_in.app.base_url.trim_start_matches("http://")).await?;
    let head = format!(
        "POST {RENDER} HTTP/1.1\r\nhost: platen\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: 12\r\n\r\n{{\"html\":\"x\"}}",
        account.key
    );
    caller.write_all(head.as_bytes()).await?;
    stand_in.farm.until_received_from(&account.id).await?;
    let (address, server) = (caller.local_addr()?, stand_in.app.server_pid());
    drop(caller);
    let is_closed = || !procfs::sockets(&[server]).iter().any(|socket| socket.remote == address);
    wait::until("the server closes the connection", is_closed).await?;
    latch.open();
    let status = async || stand_in.app.execute("SELECT status FROM attempts").await;
    let status = wait::until_some("the attempt is recorded", status).await?;
    ensure!(status == 499, "the status of the attempt is {status}");
    Ok(())
}

/// The farm of the server itself says whether the page has run.
async fn hang_up_at_own_farm(stage: Stage) -> Result<()> {
    let site = Site::start().await?;
    let app = stage.start(&Options::own_farm(stage.deployment).resolving(site::HOST)).await?;
    let latch = Latch::closed();
    let body = json!({ "url": site.put("/held", Reply::page("x").behind(&latch)) });
    let render =
        |account: &Account, id: &str| tokio::spawn(app.target(account).render(&body).request_id(id).send());
    let (first, second) =
        (app.operator.account(Quota::Of(5)).await?, app.operator.account(Quota::Of(5)).await?);
    let running = render(&first, "running");
    site.until_hits("/held", 1).await?;
    let waiting = render(&second, "waiting");
    app.until_metric("platen_farm_queue_length", 1).await?;
    waiting.abort();
    is_logged_as_cancelled(&app, &second, "waiting", false).await?;
    running.abort();
    is_logged_as_cancelled(&app, &first, "running", true).await?;
    ensure!(site.hits("/held") == 1, "the page of the job that waited was loaded");
    app.until_metric("platen_farm_slots_busy", 0).await
}

/// 499 in the row and in the access log of the edge, and this count.
async fn is_logged_as_cancelled(
    app: &TestApp,
    account: &Account,
    request_id: &str,
    counted: bool,
) -> Result<()> {
    let of_request = format!("request_id = '{request_id}'");
    app.until_rows(account, &of_request, 1).await?;
    let condition =
        format!("{of_request} AND status = 499 AND code = 'cancelled' AND counted = {}", i32::from(counted));
    ensure!(app.rows(account, &condition).await? == 1, "the row is not {condition}");
    let attempts = app.operator.attempts(&account.id).await?;
    ensure!(attempts == u64::from(counted), "{attempts} attempts are counted");
    let of_edge = |line: &&str| line.contains(request_id) && line.contains("component=\"edge\"");
    let find = |log: &str| log.lines().find(of_edge).map(str::to_owned);
    let line = app.process.wait_for(find).await?;
    ensure!(line.contains("status=499"), "{line}");
    Ok(())
}

/// The caller disconnects while its claim waits for the database: no job is sent, and the attempt is refunded.
async fn hang_up_during_claim(stage: Stage) -> Result<()> {
    let (mut stand_in, account, target) = stage.start_stand_in_for(Quota::Of(5)).await?;
    // A known key is not looked up before its claim.
    target.render(&json!({ "html": 1 })).send().await?.error(400, "\"html\" must be a string")?;
    // The statement that writes its row would be counted below.
    stand_in.app.until_rows(&account, "status = 400", 1).await?;
    let outage = Outage::begin(&mut stand_in, stage.deployment.database, false).await?;
    let before = stand_in.app.metric("platen_db_statements_total").await?;
    let render = tokio::spawn(target.minimal().request_id("gone").send());
    stand_in.app.until_metric("platen_db_statements_total", before + 1).await?;
    render.abort();
    stand_in.app.until_metric("platen_http_requests_in_flight", 0).await?;
    outage.end(&mut stand_in, false).await?;
    is_logged_as_cancelled(&stand_in.app, &account, "gone", false).await?;
    ensure!(stand_in.farm.received_in_all() == 0, "a job was sent for a caller that had gone");
    Ok(())
}

async fn farm_restarts(stage: Stage) -> Result<()> {
    let farm = StandInFarm::start(FARM_TOKEN).await?;
    let app = stage.start(&Options::with_farm(stage.deployment, farm.url())).await?;
    let account = app.operator.account(Quota::Of(5)).await?;
    let render = async || app.target(&account).minimal().send().await;
    render().await?.file("image/png")?;
    let address = farm.address();
    drop(farm);
    // A job that is sent on a connection that then ends may have been rendered.
    let server = app.server_pid();
    let is_closed = || !procfs::sockets(&[server]).iter().any(|socket| socket.remote == address);
    wait::until("the server closes its connections to the farm", is_closed).await?;
    render().await?.error(503, "The renderer is not available")?;
    let farm = StandInFarm::start_with(FARM_TOKEN, Some(address), Size::UNLIMITED, &Arc::default()).await?;
    let answer = render().await?;
    ensure!(answer.file("image/png")? == farm::FILE, "{}", answer.summary());
    ensure!(farm.received_in_all() == 1, "the restarted farm received one job");
    ensure!(app.operator.attempts(&account.id).await? == 2, "two were rendered");
    Ok(())
}

async fn farm_of_another_token(stage: Stage) -> Result<()> {
    let farm = StandInFarm::start("another token").await?;
    has_no_farm(&stage.start(&Options::with_farm(stage.deployment, farm.url())).await?).await?;
    ensure!((farm.received_in_all(), farm.rejected()) == (0, 1), "the farm accepted the job");
    Ok(())
}
