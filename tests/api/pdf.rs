//! PDF files: pages, paper, text, backgrounds, scale.

use platen_harness::image_file::WHITE;
use platen_shared::format::PaperSize;

use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = vec![
        Case::any_server("pdf/default_paper_is_a4", default_paper),
        Case::any_server("pdf/paper_in_lower_case", paper_in_lower_case),
        Case::any_server("pdf/pages_and_text", pages_and_text),
        Case::any_server("pdf/long_page_is_broken", long_page),
        Case::any_server("pdf/background_is_printed_on_request", background),
        Case::any_server("pdf/scale", scale),
    ];
    for (name, body, text) in texts() {
        cases.push(Case::any_server(name, move |stage| has_text(stage, body.clone(), text)));
    }
    for &name in PaperSize::NAMES {
        let paper = name.parse::<PaperSize>().expect("a listed name");
        let name_of_case = format!("pdf/paper/{name}");
        cases.push(Case::any_server(name_of_case, move |stage| paper_size(stage, name, paper)));
    }
    cases
}

pub(crate) async fn pdf(target: &Target, mut body: Value) -> Result<Pdf> {
    body["format"] = "pdf".into();
    Pdf::parse(target.render(&body).send().await?.file("application/pdf")?)
}

/// Checks the size of every page, to one point because Chromium rounds paper to whole pixels.
fn is_paper(pdf: &Pdf, paper: PaperSize) -> Result<()> {
    let (width, height) = paper.size();
    let (width, height) = (width.pixels() * 0.75, height.pixels() * 0.75);
    for page in pdf.pages()? {
        let near = (page.0 - width).abs() <= 1.0 && (page.1 - height).abs() <= 1.0;
        ensure!(near, "the page is {page:?} points, {paper:?} is {width} × {height}");
    }
    Ok(())
}

async fn paper_size(stage: Stage, name: &'static str, paper: PaperSize) -> Result<()> {
    let target = stage.common().await?;
    let pdf = pdf(&target, json!({ "html": "<p>x</p>", "pdfFormat": name })).await?;
    ensure!(pdf.pages()?.len() == 1, "{:?}", pdf.pages()?);
    is_paper(&pdf, paper)
}

async fn default_paper(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    is_paper(&pdf(&target, json!({ "html": "<p>x</p>" })).await?, PaperSize::A4)
}

async fn paper_in_lower_case(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    is_paper(&pdf(&target, json!({ "html": "<p>x</p>", "pdfFormat": "letter" })).await?, PaperSize::Letter)
}

async fn pages_and_text(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let html = "<p>first</p><p style='break-before:page'>second</p><p style='break-before:page'>third</p>";
    let pdf = pdf(&target, json!({ "html": html })).await?;
    ensure!(pdf.pages()?.len() == 3, "{:?}", pdf.pages()?);
    ensure!(pdf.text()? == "first second third", "{:?}", pdf.text()?);
    Ok(())
}

async fn long_page(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let lines: Vec<String> =
        (1..=200).map(|line| format!("<p style='margin:0;height:40px'>line {line}</p>")).collect();
    let pdf = pdf(&target, json!({ "html": lines.concat() })).await?;
    // 8,000 px at 96 px an inch are 83 inches; A4 has less than 11.7 for each page.
    ensure!((8..=10).contains(&pdf.pages()?.len()), "{} pages", pdf.pages()?.len());
    let text = pdf.text()?;
    ensure!((1..=200).all(|line| text.contains(&format!("line {line}"))), "{text}");
    Ok(())
}

async fn background(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let html = "<html><body style='background:rgb(0,128,0)'>\
        <div style='width:400px;height:400px;background:rgb(0,128,0)'></div></body></html>";
    for (requested, colour) in [(Some(true), GREEN), (Some(false), WHITE), (None, WHITE)] {
        let mut body = json!({ "html": html });
        if let Some(requested) = requested {
            body["printBackground"] = requested.into();
        }
        let page = pdf(&target, body).await?.first_page()?;
        page.expect(150, 150, colour).with_context(|| format!("printBackground: {requested:?}"))?;
    }
    Ok(())
}

async fn scale(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    // 100 CSS pixels are 75 points.
    let html = "<svg width=100 height=100 style='display:block'><rect width=100 height=100 fill='rgb(0,128,0)'/></svg>";
    for (scale, points) in
        [(None, 75.0), (Some(1.0), 75.0), (Some(2.0), 150.0), (Some(0.5), 37.5), (Some(0.1), 7.5)]
    {
        let mut body = json!({ "html": html });
        if let Some(scale) = scale {
            body["scale"] = scale.into();
        }
        let pdf = pdf(&target, body).await?;
        is_paper(&pdf, PaperSize::A4)?;
        #[expect(clippy::cast_precision_loss, reason = "fewer pixels than a page has")]
        let side = (pdf.first_page()?.count(GREEN) as f64).sqrt();
        ensure!((side - points).abs() < 2.0, "at scale {scale:?} it is {side} points, not {points}");
    }
    Ok(())
}

/// Requests, and the text of their files.
fn texts() -> [(&'static str, Value, &'static str); 5] {
    const SCRIPTS: &str = "Zoë Łódź Ωμέγα Москва €";
    let viewport = "<head><script>window.seen = [innerWidth, innerHeight, devicePixelRatio].join('x')</script></head>\
        <body><script>document.write(`seen ${seen}`)</script></body>";
    let viewport = json!({ "html": viewport, "width": 413, "height": 271, "deviceScaleFactor": 2 });
    let styles = "<style>.print{display:none} @media print{.print{display:block} .screen{display:none}}</style>\
        <p class=print>on paper</p><p class=screen>on screen</p>";
    let scripted = "<p id=a>before</p><script>document.getElementById('a').textContent = 'after'</script>";
    let late = "<p id=a>before</p>\
        <script>setTimeout(() => document.getElementById('a').textContent = 'after', 300)</script>";
    [
        ("pdf/text_in_many_scripts", json!({ "html": format!("<p>{SCRIPTS}</p>") }), SCRIPTS),
        ("pdf/viewport_before_first_layout", viewport, "seen 413x271x2"),
        ("pdf/print_styles_apply", json!({ "html": styles }), "on paper"),
        ("pdf/scripts_run_first", json!({ "html": scripted }), "after"),
        ("pdf/wait_for_timeout", json!({ "html": late, "waitForTimeout": 1000 }), "after"),
    ]
}

async fn has_text(stage: Stage, body: Value, expected: &str) -> Result<()> {
    let text = pdf(&stage.common().await?, body).await?.text()?;
    ensure!(text == expected, "{text:?}");
    Ok(())
}
