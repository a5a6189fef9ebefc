//! Whether pages have fonts for the scripts of the world.

use serde_json::json;

use super::{Finding, render};
use crate::Farm;

/// A sample of each script, and the Debian package that has it.
const SCRIPTS: &[(&str, &str, &str)] = &[
    ("Latin", "g", "fonts-liberation"),
    ("Greek", "\u{3c9}", "fonts-liberation"),
    ("Cyrillic", "\u{416}", "fonts-liberation"),
    ("Arabic", "\u{639}", "fonts-noto-core"),
    ("Hebrew", "\u{5e9}", "fonts-noto-core"),
    ("Devanagari", "\u{915}", "fonts-noto-core"),
    ("Thai", "\u{e01}", "fonts-noto-core"),
    ("Han", "\u{6f22}", "fonts-noto-cjk"),
    ("Japanese", "\u{3042}", "fonts-noto-cjk"),
    ("Korean", "\u{d55c}", "fonts-noto-cjk"),
    ("emoji", "\u{1f600}", "fonts-noto-color-emoji"),
];

/// The page draws each sample and compares it with characters that no font has, which look like a missing character. It
/// puts the indices of the missing ones into its title, which a PDF contains.
const PAGE: &str = r#"<title>x</title><canvas width=60 height=60></canvas><script>
const samples = SAMPLES, canvas = document.querySelector("canvas");
const context = canvas.getContext("2d", { willReadFrequently: true });
const draw = text => {
  context.clearRect(0, 0, 60, 60);
  context.font = "40px sans-serif";
  context.fillText(text, 5, 45);
  return context.getImageData(0, 0, 60, 60).data.join();
};
const missing = ["\u0378", "\u{10fffe}", " "].map(draw);
const found = samples.flatMap((sample, index) => missing.includes(draw(sample)) ? [index] : []);
document.title = "missing:" + found.join() + ";";
</script>"#;

pub(super) async fn check(farm: &Farm) -> Vec<Finding> {
    let samples: Vec<&str> = SCRIPTS.iter().map(|(_, sample, _)| *sample).collect();
    let html = PAGE.replace("SAMPLES", &json!(samples).to_string());
    let missing = match render(farm, json!({"html": html, "format": "pdf"})).await {
        Ok(pdf) => missing(&pdf),
        Err(error) => return vec![Finding::failed("render", &error)],
    };
    let rendered = Finding::ok("render", "a page was rendered to PDF");
    let fonts = match missing {
        Some(missing) if missing.is_empty() => Finding::ok("fonts", "all of the tested scripts have a font"),
        Some(missing) => {
            let scripts: Vec<&str> = missing.iter().map(|index| SCRIPTS[*index].0).collect();
            let mut packages: Vec<&str> = missing.iter().map(|index| SCRIPTS[*index].2).collect();
            packages.dedup();
            let text = format!("no font has {}: these characters are shown as boxes", scripts.join(", "));
            Finding::warning("fonts", text, format!("apt-get install {}", packages.join(" ")))
        }
        None => Finding::warning(
            "fonts",
            "which fonts there are is not known, because the PDF has no title",
            "Report this as a defect",
        ),
    };
    vec![rendered, fonts]
}

/// The indices in the title of a PDF.
fn missing(pdf: &[u8]) -> Option<Vec<usize>> {
    let text = String::from_utf8_lossy(pdf);
    let (_, rest) = text.split_once("(missing:")?;
    let (list, _) = rest.split_once(';')?;
    let indices = list.split(',').filter(|index| !index.is_empty()).map(|index| index.parse().ok());
    indices.map(|index| index.filter(|index| *index < SCRIPTS.len())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_title_has_the_indices_of_missing_scripts() {
        assert_eq!(missing(b"<</Title (missing:;)>>"), Some(vec![]));
        assert_eq!(missing(b"<</Title (missing:3,10;)>>"), Some(vec![3, 10]));
        assert_eq!(missing(b"<</Title (missing:99;)>>"), None);
        assert_eq!(missing(b"<</Title (x)>>"), None);
    }
}
