//! Checks the layout and accessibility of a page in every size and theme, and takes screenshots.

use anyhow::bail;
use platen_harness::{browser::Theme, settings::Settings};

use crate::prelude::*;

const SIZES: [(u32, u32); 2] = [(390, 844), (1440, 900)];

pub(crate) struct Album<'p> {
    pub(crate) page: &'p Page,
    axe: String,
    folder: Option<std::path::PathBuf>,
    bad: Vec<String>,
}

impl<'p> Album<'p> {
    pub(crate) fn new(page: &'p Page, settings: &Settings) -> Result<Self> {
        let axe = settings.axe.as_ref().context("set PLATEN_AXE to what scripts/install-axe prints")?;
        let axe = std::fs::read_to_string(axe)?;
        Ok(Self { page, axe, folder: settings.screenshots.clone(), bad: Vec::new() })
    }

    /// Opens the page of the dashboard at a path, and checks it.
    pub(crate) async fn visit(&mut self, app: &Service, path: &str, name: &str) -> Result<()> {
        self.page.go(&format!("{}/dashboard/{path}", app.base_url)).await?;
        self.take(name).await
    }

    /// Checks the page in every size and theme.
    pub(crate) async fn take(&mut self, name: &str) -> Result<()> {
        for theme in [Theme::Light, Theme::Dark] {
            self.take_in(name, theme).await?;
        }
        Ok(())
    }

    /// Checks the page in every size.
    pub(crate) async fn take_in(&mut self, name: &str, theme: Theme) -> Result<()> {
        for (width, height) in SIZES {
            self.page.set_viewport(width, height, theme).await?;
            let name = format!("{name}-{width}-{}", theme.name());
            // The rules read the page's colours and not those that the browser has put in their place.
            let colours =
                if theme == Theme::Forced { "{ 'color-contrast': { enabled: false } }" } else { "{}" };
            self.look_by(colours, &name, width).await?;
            self.keep(&name).await?;
        }
        Ok(())
    }

    /// Checks the page as it is shown now.
    pub(crate) async fn look(&mut self, name: &str, width: u32) -> Result<()> {
        self.look_by("{}", name, width).await
    }

    /// With changes to the rules of axe.
    async fn look_by(&mut self, rules: &str, name: &str, width: u32) -> Result<()> {
        let wide = self.page.eval("document.documentElement.scrollWidth").await?.as_u64().unwrap_or(0);
        if wide > u64::from(width) {
            self.bad.push(format!("{name}: is {wide} pixels wide"));
        }
        // The debugger injects the rules, which the policy of the page would block.
        self.page.eval(&format!("{}; void 0", self.axe)).await?;
        let run =
            format!("axe.run(document, {{ iframes: false, rules: {rules} }}).then((r) => r.violations)");
        let found = self.page.eval(&run).await?;
        let Value::Array(found) = found else { bail!("{name}: the rules say {found}") };
        for violation in found {
            if matches!(violation["impact"].as_str(), Some("serious" | "critical")) {
                let nodes = &violation["nodes"];
                let first = &nodes[0];
                let line =
                    format!("{name}: {}: {} {}", violation["id"], first["html"], first["failureSummary"]);
                self.bad.push(line);
            }
        }
        Ok(())
    }

    /// Fails if something was wrong since the last check.
    pub(crate) fn check(&mut self) -> Result<()> {
        let bad = std::mem::take(&mut self.bad);
        ensure!(bad.is_empty(), "{}", bad.join("\n"));
        Ok(())
    }

    async fn keep(&self, name: &str) -> Result<()> {
        if let Some(folder) = &self.folder {
            std::fs::create_dir_all(folder)?;
            std::fs::write(folder.join(format!("{name}.png")), self.page.screenshot().await?)?;
        }
        Ok(())
    }
}
