//! Settings of the browser, as its user may have them.

use anyhow::Result;
use chromiumoxide_cdp::cdp::browser_protocol::emulation::{
    SetScriptExecutionDisabledParams, SetTimezoneOverrideParams,
};

use super::{Page, within_timeout};

impl Page {
    /// Enables or disables scripts.
    pub async fn enable_scripts(&self, enabled: bool) -> Result<()> {
        within_timeout(self.session.call(&SetScriptExecutionDisabledParams::new(!enabled))).await?;
        Ok(())
    }

    /// Changes the time zone of scripts.
    pub async fn set_time_zone(&self, name: &str) -> Result<()> {
        within_timeout(self.session.call(&SetTimezoneOverrideParams::new(name))).await?;
        Ok(())
    }
}
