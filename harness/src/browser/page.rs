//! A page of the test browser: navigation, forms, and conditions on its content.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use chromiumoxide_cdp::cdp::{
    browser_protocol::{
        browser::BrowserContextId,
        emulation::{
            SetDeviceMetricsOverrideParams, SetEmulatedMediaParams, SetScriptExecutionDisabledParams,
            SetTimezoneOverrideParams,
        },
        input::{DispatchKeyEventParams, DispatchKeyEventType, InsertTextParams},
        network::{GetCookiesParams, SetCookieParams},
        page::{
            CaptureScreenshotFormat, CaptureScreenshotParams, CreateIsolatedWorldParams, GetFrameTreeParams,
            NavigateParams,
        },
        target::GetTargetsParams,
    },
    js_protocol::runtime::EvaluateParams,
};
use platen_cdp::Session;
use serde_json::{Value, json};

use super::{Browser, Theme, within_timeout};
use crate::wait;

/// Selects the text of a field. In the code editor that has taken the place of a field, replaces it as
/// a user does: select all, paste. Returns whether it is a code editor.
const SELECT: &str = "(selector, text) => {
    const field = document.querySelector(selector);
    const panel = field.closest('[role=tabpanel][hidden]');
    if (panel) document.getElementById(panel.getAttribute('aria-labelledby')).click();
    const editor = document.getElementById(`${field.id}-editor`)?.querySelector('.cm-content');
    if (!editor) { field.focus(); field.select(); return false; }
    editor.focus();
    const key = { key: 'a', code: 'KeyA', keyCode: 65, ctrlKey: true, bubbles: true, cancelable: true };
    editor.dispatchEvent(new KeyboardEvent('keydown', key));
    const clipboardData = new DataTransfer();
    clipboardData.setData('text/plain', text);
    editor.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
    return true;
}";

/// A page in a browser context of its own.
pub struct Page {
    browser: Arc<Browser>,
    session: Session,
    context: BrowserContextId,
}

impl Page {
    pub(super) fn new(browser: Arc<Browser>, session: Session, context: BrowserContextId) -> Self {
        Self { browser, session, context }
    }

    /// Navigates to a URL and waits until it is loaded.
    pub async fn go(&self, url: &str) -> Result<&Self> {
        self.mark().await?;
        let navigated = within_timeout(self.session.call(&NavigateParams::new(url))).await?;
        ensure!(navigated.error_text.is_none(), "{url}: {:?}", navigated.error_text);
        self.loaded().await.with_context(|| url.to_owned())?;
        Ok(self)
    }

    /// Evaluates a script, waits for its promise, and returns the value.
    pub async fn eval(&self, script: &str) -> Result<Value> {
        let mut evaluate = EvaluateParams::new(script);
        evaluate.await_promise = Some(true);
        evaluate.return_by_value = Some(true);
        evaluate.user_gesture = Some(true);
        let evaluated = within_timeout(self.session.call(&evaluate)).await?;
        if let Some(thrown) = evaluated.exception_details {
            let description = thrown.exception.and_then(|exception| exception.description);
            bail!("{script}: {}", description.unwrap_or(thrown.text));
        }
        Ok(evaluated.result.value.unwrap_or_default())
    }

    /// Evaluates a script to a string.
    pub async fn text(&self, script: &str) -> Result<String> {
        let value = self.eval(script).await?;
        Ok(value.as_str().with_context(|| format!("{script} is {value}"))?.to_owned())
    }

    /// The visible text of the page.
    pub async fn body(&self) -> Result<String> {
        self.text("document.body.innerText").await
    }

    /// Waits until the value of a script is true.
    pub async fn wait(&self, condition: &str) -> Result<()> {
        // During a navigation the script cannot be evaluated.
        let script = format!("(async () => !!await ({condition}))()");
        let is_true = async || Ok((self.eval(&script).await.ok() == Some(true.into())).then_some(()));
        match wait::until_some(condition, is_true).await {
            Ok(()) => Ok(()),
            Err(error) => Err(error.context(format!("in:\n{}", self.body().await.unwrap_or_default()))),
        }
    }

    /// Waits until a page that has loaded shows a text: what stands below it may not have been parsed before.
    pub async fn shows(&self, text: &str) -> Result<()> {
        let shown = format!("document.body.innerText.includes({})", json!(text));
        self.wait(&format!("document.readyState === 'complete' && {shown}")).await
    }

    /// Fills fields, and presses the button that sends them.
    pub async fn submit(&self, fields: &[(&str, &str)], button: &str) -> Result<&Self> {
        for (selector, text) in fields {
            self.fill(selector, text).await?;
        }
        self.press(button).await
    }

    /// The value of a field.
    pub async fn value(&self, selector: &str) -> Result<String> {
        self.text(&format!("document.querySelector({}).value", json!(selector))).await
    }

    pub async fn fill(&self, selector: &str, text: &str) -> Result<()> {
        let select = format!("({SELECT})({}, {})", json!(selector), json!(text));
        if self.eval(&select).await? != true {
            within_timeout(self.session.call(&InsertTextParams::new(text))).await?;
        }
        Ok(())
    }

    /// Types text into the element that has the focus, key by key.
    pub async fn type_text(&self, text: &str) -> Result<()> {
        for character in text.chars() {
            let mut key = DispatchKeyEventParams::new(DispatchKeyEventType::KeyDown);
            key.text = Some(character.to_string());
            key.key = Some(character.to_string());
            within_timeout(self.session.call(&key)).await?;
            key.r#type = DispatchKeyEventType::KeyUp;
            key.text = None;
            within_timeout(self.session.call(&key)).await?;
        }
        Ok(())
    }

    /// Chooses an option of a `<select>`, or enters a value as a whole.
    pub async fn choose(&self, selector: &str, value: &str) -> Result<()> {
        let enter = "(selector, value) => { const field = document.querySelector(selector); field.value = value; \
            field.dispatchEvent(new Event('change', { bubbles: true })) }";
        self.eval(&format!("void ({enter})({}, {})", json!(selector), json!(value))).await?;
        Ok(())
    }

    /// Clicks an element that does not navigate.
    pub async fn click(&self, selector: &str) -> Result<()> {
        self.eval(&format!("document.querySelector({}).click()", json!(selector))).await?;
        Ok(())
    }

    /// Clicks an element that navigates, and waits until the new page is loaded.
    pub async fn follow(&self, selector: &str) -> Result<()> {
        self.mark().await?;
        self.click(selector).await?;
        self.loaded().await.with_context(|| format!("after a click on {selector}"))
    }

    /// Clicks the button or link with this text, and waits until the new page is loaded.
    pub async fn press(&self, text: &str) -> Result<&Self> {
        self.mark().await?;
        let script = format!(
            "(() => {{ const element = [...document.querySelectorAll('main button, main a, .banner button, header button, header a')]\
             .find((e) => e.innerText.trim() === {0} || e.textContent.trim() === {0});\
             if (!element) throw new Error('no button or link with the text ' + {0}); element.click(); }})()",
            json!(text)
        );
        self.eval(&script).await?;
        self.loaded().await.with_context(|| format!("after {text:?}"))?;
        Ok(self)
    }

    /// Sets the size of the viewport and the theme.
    pub async fn set_viewport(&self, width: u32, height: u32, theme: Theme) -> Result<()> {
        let metrics = SetDeviceMetricsOverrideParams::new(width, height, 1.0, false);
        within_timeout(self.session.call(&metrics)).await?;
        let media = SetEmulatedMediaParams { features: Some(theme.media_features()), ..Default::default() };
        within_timeout(self.session.call(&media)).await?;
        Ok(())
    }

    pub async fn enable_scripts(&self, enabled: bool) -> Result<()> {
        within_timeout(self.session.call(&SetScriptExecutionDisabledParams::new(!enabled))).await?;
        Ok(())
    }

    pub async fn set_time_zone(&self, name: &str) -> Result<()> {
        within_timeout(self.session.call(&SetTimezoneOverrideParams::new(name))).await?;
        Ok(())
    }

    /// A screenshot of the whole page, as PNG.
    pub async fn screenshot(&self) -> Result<Bytes> {
        let capture = CaptureScreenshotParams {
            format: Some(CaptureScreenshotFormat::Png),
            capture_beyond_viewport: Some(true),
            ..Default::default()
        };
        let reply = within_timeout(self.session.start(&capture)?.reply()).await?;
        reply.into_file()?.context("the screenshot is empty")
    }

    pub async fn set_cookie(&self, url: &str, name: &str, value: &str) -> Result<()> {
        let mut cookie = SetCookieParams::new(name, value);
        cookie.url = Some(url.to_owned());
        within_timeout(self.session.call(&cookie)).await?;
        Ok(())
    }

    /// Names and values of the cookies that a request to a URL carries.
    pub async fn cookies(&self, url: &str) -> Result<Vec<(String, String)>> {
        let cookies = GetCookiesParams { urls: Some(vec![url.to_owned()]) };
        let cookies = within_timeout(self.session.call(&cookies)).await?.cookies;
        Ok(cookies.into_iter().map(|cookie| (cookie.name, cookie.value)).collect())
    }

    /// Waits until a frame of the page, of any origin, shows this text.
    pub async fn frames_show(&self, text: &str) -> Result<()> {
        self.in_frames(&format!("document.body?.innerText.includes({})", json!(text))).await
    }

    /// Waits until the value of a script is true in a frame of the page, of any origin.
    pub async fn in_frames(&self, condition: &str) -> Result<()> {
        wait::until_some(&format!("{condition} in a frame"), async || {
            for session in self.frame_sessions().await? {
                // A frame may be removed while the script is evaluated.
                if is_true_in_a_frame(&session, condition).await.unwrap_or(false) {
                    return Ok(Some(()));
                }
            }
            Ok(None)
        })
        .await
    }

    /// The session of the page, and one for each frame that has a process of its own.
    async fn frame_sessions(&self) -> Result<Vec<Session>> {
        let mut sessions = vec![self.session.clone()];
        let targets = within_timeout(self.browser.connection.call(&GetTargetsParams::default())).await?;
        for target in targets.target_infos {
            if target.r#type == "iframe" && target.browser_context_id.as_ref() == Some(&self.context) {
                sessions.extend(self.browser.attach(target.target_id).await.ok());
            }
        }
        Ok(sessions)
    }

    /// Marks the document, so that `loaded` can tell the next one from it.
    async fn mark(&self) -> Result<()> {
        self.eval("void (window.platenTestsLeft = true)").await?;
        Ok(())
    }

    async fn loaded(&self) -> Result<()> {
        self.wait("!window.platenTestsLeft && document.readyState === 'complete'").await
    }
}

/// Whether the value of a script is true in a frame of this session's target.
async fn is_true_in_a_frame(session: &Session, condition: &str) -> Result<bool> {
    let mut trees = vec![within_timeout(session.call(&GetFrameTreeParams {})).await?.frame_tree];
    while let Some(tree) = trees.pop() {
        trees.extend(tree.child_frames.into_iter().flatten());
        let world = within_timeout(session.call(&CreateIsolatedWorldParams::new(tree.frame.id))).await?;
        let mut evaluate = EvaluateParams::new(format!("!!({condition})"));
        evaluate.return_by_value = Some(true);
        evaluate.context_id = Some(world.execution_context_id);
        if within_timeout(session.call(&evaluate)).await?.result.value == Some(Value::Bool(true)) {
            return Ok(true);
        }
    }
    Ok(false)
}
