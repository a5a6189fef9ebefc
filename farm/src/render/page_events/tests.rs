use std::{
    io::{self, Read as _, Write as _},
    sync::Arc,
};

use chromiumoxide_cdp::cdp::browser_protocol::target::SessionId;
use platen_cdp::{BrowserPipes, Connection};
use platen_shared::{
    format::ImageFormat,
    id::AccountId,
    job::{ImageOptions, Output, RenderJob, RenderOptions},
};
use serde_json::{Value, json};

use super::*;
use crate::{
    egress::Egress,
    job_progress::{PageStarted, Phases},
    metrics::Metrics,
    render::{Clock, load_state::MAX_SCRIPTS},
};

/// What a handler has made of a sequence of events.
struct Handled {
    state: LoadState,
    tainted: bool,
    /// The parameters of the commands that it has sent.
    commands: Vec<Value>,
}

/// Sends events from a browser that then exits.
async fn handle(events: impl IntoIterator<Item = (&'static str, Value)>) -> Handled {
    let (mut commands, to_browser) = io::pipe().unwrap();
    let (from_browser, mut browser) = io::pipe().unwrap();
    let pipes = BrowserPipes { to_browser: to_browser.into(), from_browser: from_browser.into() };
    let connection = Arc::new(Connection::open(pipes).unwrap());
    let (session, mut queue) = Session::new(connection, SessionId::new("S"));
    let events: Vec<_> = events.into_iter().collect();
    // The queue receives all of them before the handler reads one.
    let writing = tokio::task::spawn_blocking(move || {
        for (method, params) in events {
            let event = json!({ "method": method, "params": params, "sessionId": "S" });
            browser.write_all(format!("{event}\0").as_bytes()).unwrap();
        }
    });
    writing.await.unwrap();
    let traffic = Egress::new(Arc::default(), Arc::new(Metrics::new())).unwrap();
    let traffic = traffic.job("", PageStarted::default(), &[]);
    let source = Source::Html("x".to_owned().try_into().unwrap());
    let options = RenderOptions::new(Output::Image(ImageOptions::new(ImageFormat::Png)));
    let job = RenderJob { account: AccountId::from_text("acc_test"), source, options };
    let (deadline, phases) = (Instant::now(), Phases::default());
    let context = JobContext {
        job: &job,
        site: None,
        egress: &traffic,
        deadline,
        clock: Clock::Virtual,
        phases: &phases,
    };
    let (mut tainted, agent) = (false, SetUserAgentOverrideParams::new("x"));
    let (handler, state, _) = PageEventHandler::new(&session, "F", &mut tainted, &agent, &context);
    assert!(matches!(handler.run(&mut queue).await, JobError::Cdp(CdpError::PageGone)));
    let state = *state.borrow();
    drop((queue, session));
    let sent = tokio::task::spawn_blocking(move || {
        let mut sent = String::new();
        commands.read_to_string(&mut sent).map(|_| sent)
    });
    let sent = sent.await.unwrap().unwrap();
    let commands = sent.split_terminator('\0');
    let commands = commands.map(|text| serde_json::from_str::<Value>(text).unwrap()["params"].take());
    Handled { state, tainted, commands: commands.collect() }
}

/// A request of another Chromium than that of the generated types: enums that the farm does not read have new values, and a
/// mandatory field is missing.
fn request(id: &str, kind: &str, url: &str) -> (&'static str, Value) {
    let params = json!({
        "requestId": id, "loaderId": "L", "frameId": "F", "type": kind,
        "request": {
            "url": url, "method": "GET", "headers": {}, "initialPriority": "New", "referrerPolicy": "new",
            "mixedContentType": "new", "newField": [1, { "a": null }],
        },
        "timestamp": 1.5, "wallTime": 2.5, "initiator": { "type": "new" }, "redirectHasExtraInfo": false,
        "renderBlockingBehavior": "New", "newField": {},
    });
    ("Network.requestWillBeSent", params)
}

fn failed(id: &str) -> (&'static str, Value) {
    let params = json!({
        "requestId": id, "timestamp": 1.5, "type": "NewType", "errorText": "net::ERR_FAILED",
        "blockedReason": "new-reason", "corsErrorStatus": { "corsError": "NewError", "failedParameter": "" },
        "newField": true,
    });
    ("Network.loadingFailed", params)
}

fn response(security_state: &str) -> (&'static str, Value) {
    let params = json!({
        "requestId": "1", "loaderId": "L", "timestamp": 1.5, "type": "Document", "hasExtraInfo": false,
        "newField": 1,
        "response": {
            "url": "http://a.test/", "status": 200, "statusText": "OK", "mimeType": "text/html",
            "charset": "utf-8", "headers": { "etag": "a" }, "connectionReused": false, "connectionId": 1,
            "encodedDataLength": 3, "securityState": security_state, "newField": 1,
        },
    });
    ("Network.responseReceived", params)
}

fn dialog(kind: &str) -> (&'static str, Value) {
    let params = json!({
        "url": "about:blank", "frameId": "F", "message": "", "type": kind, "hasBrowserHandler": false,
        "newField": 1,
    });
    ("Page.javascriptDialogOpening", params)
}

fn lifecycle(name: &str) -> (&'static str, Value) {
    let params = json!({ "frameId": "F", "loaderId": "L", "name": name, "timestamp": 1.5, "newField": 1 });
    ("Page.lifecycleEvent", params)
}

#[tokio::test]
async fn requests_are_counted_whatever_their_unread_fields_hold() {
    let image = || request("1", "Image", "data:image/bmp;base64,");
    let loaded = handle([lifecycle("init"), image(), lifecycle("load")]).await;
    assert!(
        loaded.state.document.loaded && !loaded.state.document.parsed && loaded.state.document.number == 1
    );
    assert_eq!((loaded.state.requests.open, loaded.state.requests.newest_drawn), (1, Some(1)));
    assert!(!loaded.tainted);

    let finished = json!({ "requestId": "1", "timestamp": 1.5, "encodedDataLength": 3, "newField": 1 });
    let incomplete = json!({ "requestId": "1" });
    let finished = [finished, incomplete].map(|params| ("Network.loadingFinished", params));
    for end in [failed("1")].into_iter().chain(finished) {
        let ended = handle([image(), request("2", "NewType", "http://a.test/"), end]).await;
        assert_eq!(
            (ended.state.requests.open, ended.state.requests.sent, ended.state.requests.newest_drawn),
            (1, 2, None)
        );
        assert!(ended.tainted && ended.state.activity.may_change, "an unknown type may be a script");
    }
}

#[tokio::test]
async fn what_is_fetched_for_later_is_not_drawn() {
    for (kind, priority, is_preload, is_drawn) in [
        ("Other", "Low", false, true),
        ("Other", "VeryLow", false, false),
        ("Other", "High", true, false),
        ("Font", "High", true, true),
        ("Stylesheet", "VeryLow", false, true),
        ("Prefetch", "VeryLow", false, false),
    ] {
        let (event, mut params) = request("1", kind, "http://a.test/");
        params["request"]["initialPriority"] = priority.into();
        params["request"]["isLinkPreload"] = is_preload.into();
        let state = handle([(event, params)]).await.state;
        assert_eq!(
            (state.requests.open, state.requests.newest_drawn.is_some()),
            (1, is_drawn),
            "{kind} {priority}"
        );
    }
}

#[tokio::test]
async fn a_document_that_is_opened_again_keeps_its_requests() {
    let image = || request("1", "Image", "http://a.test/");
    let mut other = lifecycle("init");
    other.1["loaderId"] = "M".into();
    for (next, requests) in [(lifecycle("init"), 1), (other, 0)] {
        let state = handle([lifecycle("init"), image(), next]).await.state;
        assert_eq!((state.document.number, state.requests.open), (2, requests));
    }
}

#[tokio::test]
async fn unreadable_requests_are_not_waited_for() {
    let request = || request("1", "Font", "http://a.test/font");
    let unknown = handle([("Network.requestWillBeSent", json!({ "requestId": 1 }))]).await;
    assert!(unknown.tainted && unknown.state.activity.may_change && unknown.state.activity.needs_real_time);
    assert_eq!(unknown.state.requests.open, 0);
    for end in ["Network.loadingFinished", "Network.loadingFailed"] {
        let ended = handle([request(), (end, json!({ "newField": 1 }))]).await;
        assert_eq!((ended.state.requests.open, ended.state.requests.sent), (0, 1), "{end}");
    }
}

#[tokio::test]
async fn an_unreadable_response_leaves_no_proof_of_stillness() {
    assert!(!handle([response("secure")]).await.state.activity.may_change);
    let unknown = handle([response("new-state")]).await;
    assert!(unknown.state.activity.may_change);
}

#[tokio::test]
async fn an_unknown_dialog_is_dismissed() {
    for (kind, accept) in [("alert", true), ("beforeunload", true), ("confirm", false), ("new", false)] {
        let handled = handle([dialog(kind)]).await;
        assert_eq!(handled.commands, [json!({ "accept": accept })], "{kind}");
        assert_eq!(handled.state.document.dialogs, 1);
    }
}

#[tokio::test]
async fn an_unreadable_worker_needs_real_time() {
    for event in [
        "Target.attachedToTarget",
        "Target.detachedFromTarget",
        "Media.playerCreated",
        "Media.playerEventsAdded",
    ] {
        let handled = handle([(event, json!({ "sessionId": 1 }))]).await;
        let needs_real_time = ["Target.attachedToTarget", "Media.playerCreated"].contains(&event);
        assert_eq!(handled.state.activity.needs_real_time, needs_real_time);
        assert_eq!(handled.tainted, event == "Target.attachedToTarget");
    }
}

#[tokio::test]
async fn a_page_with_too_many_scripts_needs_real_time() {
    for (scripts, too_many) in [(MAX_SCRIPTS, false), (MAX_SCRIPTS + 2, true)] {
        let handled = handle((0..scripts).map(|_| ("Debugger.scriptParsed", json!({})))).await;
        assert_eq!(
            (handled.state.activity.needs_real_time, handled.commands.len()),
            (too_many, usize::from(too_many))
        );
        assert!(!handled.tainted);
    }
}

#[tokio::test]
async fn a_navigation_of_the_main_frame_is_recognised() {
    let event = |name: &'static str, frame: &str| {
        let params = json!({
            "frameId": frame, "delay": 0, "reason": "scriptInitiated", "url": "http://a/",
            "disposition": "currentTab", "navigationType": "differentDocument", "loaderId": "L",
        });
        (name, params)
    };
    let scheduled = event("Page.frameScheduledNavigation", "F");
    let requested = event("Page.frameRequestedNavigation", "F");
    let cleared = event("Page.frameClearedScheduledNavigation", "F");
    let started = event("Page.frameStartedNavigating", "F");
    let stopped = event("Page.frameStoppedLoading", "F");
    let mut within = event("Page.frameStartedNavigating", "F");
    within.1["navigationType"] = "sameDocument".into();
    let mut refresh = scheduled.clone();
    refresh.1["delay"] = 5.into();
    for (events, navigating) in [
        (vec![scheduled.clone()], true),
        (vec![scheduled.clone(), cleared.clone()], false),
        (vec![scheduled.clone(), requested.clone(), cleared.clone()], true),
        (vec![scheduled.clone(), requested.clone(), stopped.clone(), cleared.clone()], true),
        (vec![started.clone(), requested.clone(), stopped.clone()], true),
        (vec![scheduled, requested, cleared, started.clone(), stopped], false),
        (vec![started], true),
        (vec![within], false),
        (vec![refresh], false),
        (vec![event("Page.frameStartedNavigating", "other")], false),
    ] {
        assert_eq!(handle(events.clone()).await.state.navigation.in_progress, navigating, "{events:?}");
    }
}

#[tokio::test]
async fn the_third_request_of_a_script_to_an_address_is_a_poll() {
    let script = |id: &str, kind: &str, method: &str, url: &str, initiator: &str| {
        let (event, mut params) = request(id, kind, url);
        params["request"]["method"] = method.into();
        params["initiator"]["type"] = initiator.into();
        (event, params)
    };
    let fetch = |id: &str, url: &str| script(id, "Fetch", "GET", url, "script");
    let ended = |id: &str| {
        ("Network.loadingFinished", json!({ "requestId": id, "timestamp": 1.5, "encodedDataLength": 3 }))
    };
    let (poll, other) = ("http://a.test/poll", "http://a.test/other");
    let twice = || [lifecycle("load"), fetch("1", poll), ended("1"), fetch("2", poll), ended("2")];
    for (third, is_quiet) in [
        (fetch("3", poll), true),
        (script("3", "Image", "GET", poll, "script"), true),
        (fetch("3", other), false),
        (script("3", "Fetch", "POST", poll, "script"), false),
        (script("3", "Image", "GET", poll, "parser"), false),
    ] {
        let state = handle(twice().into_iter().chain([third])).await.state;
        assert_eq!((state.requests.open, state.requests.early), (1, 0));
        assert_eq!(state.is_quiet(Instant::now()), is_quiet);
    }
    // Before `load`, or in another document, they count.
    let early = [fetch("1", poll), fetch("2", poll), fetch("3", poll), lifecycle("load")];
    let begun = [lifecycle("init")].into_iter().chain(early);
    assert_eq!(handle(begun).await.state.requests.early, 3);
    let next = twice().into_iter().chain([lifecycle("init"), lifecycle("load"), fetch("3", poll)]);
    assert!(!handle(next).await.state.is_quiet(Instant::now()));
}
