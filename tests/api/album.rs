//! Checks the layout and accessibility of a page in every size and theme, and takes screenshots.

use anyhow::bail;
use platen_harness::{browser::Theme, settings::Settings};

use crate::prelude::*;

/// Width and height of viewports, from the smallest to the largest that the dashboard is made for.
const SIZES: [(u32, u32); 6] = [(360, 740), (390, 844), (768, 1024), (1024, 768), (1440, 900), (1920, 1080)];
/// Widths in which the rules of accessibility are checked.
const WIDTHS_OF_RULES: [u32; 2] = [390, 1440];
/// Widths of screenshots.
const WIDTHS_OF_PICTURES: [u32; 3] = [390, 1024, 1440];

/// What is wrong with the layout: a page that scrolls sideways, and in tables a cell outside of the table's box, text that
/// is cut off without an ellipsis and a tooltip or link to all of it, or with too little left of it, and a row
/// of the dashboard of several lines.
const LAYOUT: &str = "(() => {
    const bad = [];
    const root = document.documentElement;
    if (root.scrollWidth > root.clientWidth) bad.push(`is ${root.scrollWidth} pixels wide`);
    for (const table of document.querySelectorAll('main table')) {
        const box = table.parentElement.getBoundingClientRect();
        for (const row of table.querySelectorAll('tbody tr')) {
            const isLine = getComputedStyle(row).display === 'table-row' && location.pathname.startsWith('/dashboard');
            if (isLine && row.offsetHeight > 64) bad.push(`a row is ${row.offsetHeight} pixels high: ${row.innerText}`);
        }
        for (const cell of table.querySelectorAll('th, td')) {
            const { left, right } = cell.getBoundingClientRect();
            if (cell.offsetParent === null || cell.closest('thead')?.offsetWidth === 1) continue;
            if (left < box.left - 1 || right > box.right + 1) bad.push(`outside of the table: ${cell.innerText}`);
            for (const element of [cell, ...cell.querySelectorAll(':not(.visually-hidden)')]) {
                if (element.clientWidth === 0 || element.scrollWidth <= element.clientWidth) continue;
                const hasEllipsis = getComputedStyle(element).textOverflow === 'ellipsis'
                    && (element.closest('[title]') ?? element.querySelector('[title], a'));
                if (!hasEllipsis || element.clientWidth < 60) {
                    bad.push(`cut off at ${element.clientWidth} pixels: ${element.outerHTML}`);
                }
            }
        }
    }
    return bad;
})()";

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
            // Colours do not change the layout.
            if theme != Theme::Light && !WIDTHS_OF_PICTURES.contains(&width) {
                continue;
            }
            self.page.set_viewport(width, height, theme).await?;
            let name = format!("{name}-{width}-{}", theme.name());
            let found = self.page.eval(LAYOUT).await?;
            let found = found.as_array().context("a list")?;
            self.bad.extend(found.iter().map(|found| format!("{name}: {found}")));
            if WIDTHS_OF_RULES.contains(&width) {
                match theme {
                    Theme::Light => self.look(&name).await?,
                    // All other rules find what they find in light.
                    Theme::Dark => self.look_by("runOnly: 'color-contrast'", &name).await?,
                    // The rules read the page's colours and not those that the browser has put in their place.
                    Theme::Forced => {}
                }
            }
            if WIDTHS_OF_PICTURES.contains(&width) {
                self.keep(&name).await?;
            }
        }
        Ok(())
    }

    /// Checks the page as it is shown now.
    pub(crate) async fn look(&mut self, name: &str) -> Result<()> {
        self.look_by("", name).await
    }

    /// Looks with options of axe.
    async fn look_by(&mut self, options: &str, name: &str) -> Result<()> {
        if self.page.eval("!window.axe").await? == true {
            // The debugger injects the rules, which the policy of the page would block.
            self.page.eval(&format!("{}; void 0", self.axe)).await?;
        }
        let run = format!(
            "axe.run(document, {{ iframes: false, resultTypes: ['violations'], {options} }}).then((r) => r.violations)"
        );
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
