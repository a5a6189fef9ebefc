//! One page: going somewhere, filling forms, asking what is there.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{Browser, PATIENCE};

/// Between two looks at a page.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

/// Light or dark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    /// Light.
    Light,
    /// Dark.
    Dark,
}

impl Theme {
    /// As style sheets name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }
}

/// A page in a browser.
pub struct Page {
    browser: Arc<Browser>,
    session: String,
    context: String,
}

impl Page {
    pub(super) fn new(browser: Arc<Browser>, session: String, context: String) -> Self {
        Self { browser, session, context }
    }

    async fn call(&self, method: &str, parameters: Value) -> Result<Value> {
        self.browser.call(Some(&self.session), method, parameters).await
    }

    /// Goes to an address and waits until it is loaded.
    ///
    /// # Errors
    /// When it cannot be reached.
    pub async fn go(&self, url: &str) -> Result<()> {
        self.mark().await?;
        let gone = self.call("Page.navigate", json!({ "url": url })).await?;
        ensure!(gone["errorText"].is_null(), "{url}: {}", gone["errorText"]);
        self.loaded().await.with_context(|| url.to_owned())
    }

    /// Evaluates a script, waiting for its promise, and gives its value.
    ///
    /// # Errors
    /// When it throws.
    pub async fn eval(&self, script: &str) -> Result<Value> {
        let parameters =
            json!({ "expression": script, "awaitPromise": true, "returnByValue": true, "userGesture": true });
        let mut answer = self.call("Runtime.evaluate", parameters).await?;
        if let Some(thrown) = answer.get("exceptionDetails") {
            bail!("{script}: {}", thrown["exception"]["description"].as_str().unwrap_or("thrown"));
        }
        Ok(answer["result"]["value"].take())
    }

    /// Evaluates a script to a text.
    ///
    /// # Errors
    /// When it throws or is something else.
    pub async fn text(&self, script: &str) -> Result<String> {
        let value = self.eval(script).await?;
        Ok(value.as_str().with_context(|| format!("{script} is {value}"))?.to_owned())
    }

    /// The visible text of the page.
    ///
    /// # Errors
    /// When the page is gone.
    pub async fn body(&self) -> Result<String> {
        self.text("document.body.innerText").await
    }

    /// Waits until a script's value is true.
    ///
    /// # Errors
    /// When it never is; the error holds the page's text.
    pub async fn wait(&self, condition: &str) -> Result<()> {
        let began = Instant::now();
        loop {
            // In the middle of a navigation there is nothing to ask.
            if matches!(self.eval(&format!("!!({condition})")).await, Ok(Value::Bool(true))) {
                return Ok(());
            }
            if began.elapsed() > PATIENCE {
                bail!("never {condition} in:\n{}", self.body().await.unwrap_or_default());
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    /// Waits until the page shows this text.
    ///
    /// # Errors
    /// When it never does; the error holds the page's text.
    pub async fn shows(&self, text: &str) -> Result<()> {
        self.wait(&format!("document.body.innerText.includes({})", json!(text))).await
    }

    /// Types a text into a field, in place of what is there.
    ///
    /// # Errors
    /// When there is no such field.
    pub async fn fill(&self, selector: &str, text: &str) -> Result<()> {
        let select = format!(
            "(() => {{ const f = document.querySelector({}); f.focus(); f.select(); }})()",
            json!(selector)
        );
        self.eval(&select).await?;
        self.call("Input.insertText", json!({ "text": text })).await?;
        Ok(())
    }

    /// Chooses an option.
    ///
    /// # Errors
    /// When there is no such field.
    pub async fn choose(&self, selector: &str, value: &str) -> Result<()> {
        self.eval(&format!("void (document.querySelector({}).value = {})", json!(selector), json!(value)))
            .await?;
        Ok(())
    }

    /// Clicks something that stays on the page.
    ///
    /// # Errors
    /// When there is no such thing.
    pub async fn click(&self, selector: &str) -> Result<()> {
        self.eval(&format!("document.querySelector({}).click()", json!(selector))).await?;
        Ok(())
    }

    /// Clicks something that leads to another page, and waits until that is loaded.
    ///
    /// # Errors
    /// When there is no such thing.
    pub async fn follow(&self, selector: &str) -> Result<()> {
        self.mark().await?;
        self.click(selector).await?;
        self.loaded().await.with_context(|| format!("after a click on {selector}"))
    }

    /// Clicks the button or link with this text, and waits until the page it leads to is loaded.
    ///
    /// # Errors
    /// When there is none.
    pub async fn press(&self, text: &str) -> Result<()> {
        self.mark().await?;
        let script = format!(
            "(() => {{ const it = [...document.querySelectorAll('main button, main a, header button, header a')]\
             .find((e) => e.innerText.trim() === {0} || e.textContent.trim() === {0});\
             if (!it) throw new Error('there is no ' + {0}); it.click(); }})()",
            json!(text)
        );
        self.eval(&script).await?;
        self.loaded().await.with_context(|| format!("after {text:?}"))
    }

    /// Sets the size of the window and the theme.
    ///
    /// # Errors
    /// When the page is gone.
    pub async fn look(&self, width: u32, height: u32, theme: Theme) -> Result<()> {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", metrics).await?;
        let feature = json!({ "features": [{ "name": "prefers-color-scheme", "value": theme.name() }] });
        self.call("Emulation.setEmulatedMedia", feature).await?;
        Ok(())
    }

    /// A picture of the whole page, as PNG.
    ///
    /// # Errors
    /// When the page is gone.
    pub async fn screenshot(&self) -> Result<Vec<u8>> {
        let parameters = json!({ "format": "png", "captureBeyondViewport": true });
        let taken = self.call("Page.captureScreenshot", parameters).await?;
        Ok(BASE64_STANDARD.decode(taken["data"].as_str().context("a picture")?)?)
    }

    /// With or without scripts.
    ///
    /// # Errors
    /// When the page is gone.
    pub async fn scripts(&self, on: bool) -> Result<()> {
        self.call("Emulation.setScriptExecutionDisabled", json!({ "value": !on })).await?;
        Ok(())
    }

    /// Sets a cookie of this browser's.
    ///
    /// # Errors
    /// When the page is gone.
    pub async fn set_cookie(&self, url: &str, name: &str, value: &str) -> Result<()> {
        self.call("Network.setCookie", json!({ "url": url, "name": name, "value": value })).await?;
        Ok(())
    }

    /// The cookies a server of this address gets.
    ///
    /// # Errors
    /// When the page is gone.
    pub async fn cookies(&self, url: &str) -> Result<Vec<(String, String)>> {
        let cookies = self.call("Network.getCookies", json!({ "urls": [url] })).await?;
        let text = |cookie: &Value, name: &str| cookie[name].as_str().unwrap_or_default().to_owned();
        let cookies = cookies["cookies"].as_array().context("cookies")?;
        Ok(cookies.iter().map(|cookie| (text(cookie, "name"), text(cookie, "value"))).collect())
    }

    /// Waits until some frame of the page, of whatever origin, shows this text.
    ///
    /// # Errors
    /// When none ever does.
    pub async fn frames_show(&self, text: &str) -> Result<()> {
        self.in_frames(&format!("document.body?.innerText.includes({})", json!(text))).await
    }

    /// Waits until a script's value is true in some frame of the page, of whatever origin.
    ///
    /// # Errors
    /// When it never is.
    pub async fn in_frames(&self, condition: &str) -> Result<()> {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            for session in self.frame_sessions().await? {
                // Frames come and go while they are asked.
                if self.session_frames_show(&session, condition).await.unwrap_or(false) {
                    return Ok(());
                }
            }
            sleep(LOOK_AGAIN).await;
        }
        bail!("never {condition} in a frame")
    }

    /// The page's own session, and one for each frame that has a process of its own.
    async fn frame_sessions(&self) -> Result<Vec<String>> {
        let mut sessions = vec![self.session.clone()];
        let targets = self.browser.call(None, "Target.getTargets", json!({})).await?;
        for target in targets["targetInfos"].as_array().into_iter().flatten() {
            if target["type"] == "iframe" && target["browserContextId"] == self.context.as_str() {
                let attach = json!({ "targetId": target["targetId"], "flatten": true });
                if let Ok(session) = self.browser.call(None, "Target.attachToTarget", attach).await {
                    sessions.extend(session["sessionId"].as_str().map(str::to_owned));
                }
            }
        }
        Ok(sessions)
    }

    async fn session_frames_show(&self, session: &str, condition: &str) -> Result<bool> {
        let call = |method, parameters| self.browser.call(Some(session), method, parameters);
        let tree = call("Page.getFrameTree", json!({})).await?;
        let mut trees = vec![&tree["frameTree"]];
        while let Some(tree) = trees.pop() {
            trees.extend(tree["childFrames"].as_array().into_iter().flatten());
            let frame = json!({ "frameId": tree["frame"]["id"] });
            let world = call("Page.createIsolatedWorld", frame).await?;
            let question = json!({
                "expression": format!("!!({condition})"), "returnByValue": true,
                "contextId": world["executionContextId"],
            });
            if call("Runtime.evaluate", question).await?["result"]["value"] == true {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn mark(&self) -> Result<()> {
        // A question that a page asks before it is left would stay unanswered.
        self.eval("void (window.platenTestsLeft = true)").await?;
        Ok(())
    }

    async fn loaded(&self) -> Result<()> {
        self.wait("!window.platenTestsLeft && document.readyState === 'complete'").await
    }
}
