//! The templates of `examples/`, each with the body of its request, which the documents in `docs/how-to/` show.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::bail;
use platen_harness::settings::tests_dir;

use crate::option_pictures::{pages, side_by_side};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = EXAMPLES
        .iter()
        .map(|example| {
            let run = move |stage| renders(stage, example);
            Case::any_database(format!("examples/{}", example.name), run)
        })
        .collect();
    cases.push(Case::any_database("examples/e-invoice", e_invoice).needs_program("jq"));
    cases.push(Case::files("examples/are_tested_and_documented", |_| async { are_documented() }));
    cases
}

struct Example {
    name: &'static str,
    file_name: &'static str,
    expected: Expected,
}

enum Expected {
    Pdf {
        /// Its pages, each with this width and height in points.
        pages: usize,
        size: (f64, f64),
        /// What the file says, with white space made single spaces.
        texts: &'static [&'static str],
        outline: &'static [&'static str],
    },
    /// A PNG with this width and a height in this range, in pixels.
    Png { width: u32, height: std::ops::RangeInclusive<u32> },
}

const A4: (f64, f64) = (595.0, 842.0);

const EXAMPLES: &[Example] = &[
    Example {
        name: "numbered-invoice",
        file_name: "invoice-2026-0042.pdf",
        expected: Expected::Pdf {
            pages: 3,
            size: A4,
            texts: &[
                "Page 1 of 3",
                "Page 2 of 3",
                "Page 3 of 3",
                "21 November 2026",
                "Children's board book",
                "Subtotal 31,378.50 €",
                "VAT 7 % 2,196.50 €",
                "Total 33,575.00 €",
            ],
            outline: &[],
        },
    },
    Example {
        name: "packing-list",
        file_name: "packing-list.pdf",
        expected: Expected::Pdf {
            pages: 3,
            size: A4,
            texts: &[
                "24 November 2026",
                "Carton 1 of 3: Books",
                "169 59.87 kg",
                "301 66.54 kg",
                "55 4.85 kg",
                "All cartons: 525 pieces, 131.26 kg",
                "Page 3 / 3",
            ],
            outline: &[],
        },
    },
    Example {
        name: "social-card",
        file_name: "social-card.png",
        expected: Expected::Png { width: 2400, height: 1260..=1260 },
    },
    Example {
        name: "report",
        file_name: "annual-report-2026.pdf",
        expected: Expected::Pdf {
            pages: 3,
            size: A4,
            // The texts of the charts and the sums of the table are made by the template.
            texts: &[
                "Page 1 of 3",
                "Page 3 of 3",
                "2.72 m € 20,098 96.8 % 2.1 %",
                "Jan Feb Mar",
                "Books 41 %",
                "Germany 38 %",
                "Quarter 1 4,166 563,000 €",
                "Quarter 4 6,275 848,000 €",
                "2026 20,098 2,716,000 € 96.8 % 2.1 %",
            ],
            outline: &["Annual report 2026", "Revenue", "Figures by month", "Outlook"],
        },
    },
    Example {
        name: "certificate",
        file_name: "certificate.pdf",
        expected: Expected::Pdf {
            pages: 1,
            size: (A4.1, A4.0),
            texts: &["Sample Books GmbH", "Certificate PP-2026-0117"],
            outline: &[],
        },
    },
    Example {
        name: "shipping-label",
        file_name: "label.pdf",
        expected: Expected::Pdf {
            pages: 1,
            size: (283.5, 425.2),
            texts: &["10115 Berlin", "XP26112100427"],
            outline: &[],
        },
    },
    Example {
        name: "email",
        file_name: "order-confirmation.png",
        // Longer than the viewport, which is 100 pixels high.
        expected: Expected::Png { width: 1200, height: 1500..=1800 },
    },
    Example {
        name: "arabic-letter",
        file_name: "letter.pdf",
        expected: Expected::Pdf {
            pages: 2,
            size: A4,
            texts: &["office@press.example", "EP-2026/117", "٢٠٢٦"],
            outline: &[],
        },
    },
];

async fn renders(stage: Stage, example: &'static Example) -> Result<()> {
    let folder = root().join("examples");
    let html = std::fs::read_to_string(folder.join(format!("{}.html", example.name)))?;
    let body = std::fs::read_to_string(folder.join(format!("{}.json", example.name)))?;
    let options_file = folder.join(format!("{}.options.json", example.name));
    let options: Value = serde_json::from_str(&std::fs::read_to_string(&options_file)?)?;
    let request: Value = serde_json::from_str(&body)?;
    every_value_is_used(&html, &options, &request)?;
    let put = put(example, request.get("data").is_some())?;

    let service = stage.real_service().await?;
    let account = service.operator.account(Quota::Unlimited).await?;
    let put: Vec<&str> = put.iter().map(String::as_str).chain(["--account", &account.id]).collect();
    let saved = service.operator.run(&put).await?;
    let body = body.replacen("TEMPLATE_ID", saved["id"].as_str().context("an id")?, 1);
    let answer = service.target(&account).post(TEMPLATE, body).send().await?;
    save(&stage, example, &answer)?;
    is_expected(&answer, &example.expected)?;
    ensure!(answer.file_name()? == example.file_name, "{}", answer.file_name()?);
    // The commands of the document make the same kind of file.
    let printed = String::from_utf8(service.operator.output(&put)?.stdout)?;
    let bytes = made_by_document(&service, &account, example.name, printed)?;
    ensure!(bytes.first_chunk::<4>() == answer.body.first_chunk::<4>(), "another kind of file");
    Ok(())
}

/// The command that saves the template, without its account, as the document has it.
fn put(example: &Example, is_jinja: bool) -> Result<Vec<String>> {
    let path = |extension| {
        let path = root().join(format!("examples/{}.{extension}", example.name));
        path.into_os_string().into_string().map_err(|_| anyhow::anyhow!("not a UTF-8 path"))
    };
    let document = std::fs::read_to_string(root().join(format!("docs/how-to/{}.md", example.name)))?;
    ensure!(document.contains("--language jinja") == is_jinja, "another language in the document");
    let language = if is_jinja { "jinja" } else { "placeholders" };
    let words = ["template", "put", "--name", example.name, "--language", language, "--options"];
    let files = [path("options.json")?, path("html")?];
    Ok(words.map(str::to_owned).into_iter().chain(files).collect())
}

/// The file that the commands of a document make. `platen` has run for the database of the server; the commands get what
/// it has printed.
fn made_by_document(service: &Service, account: &Account, name: &str, printed: String) -> Result<Vec<u8>> {
    let document = std::fs::read_to_string(root().join(format!("docs/how-to/{name}.md")))?;
    let (_, commands) = document.split_once("```sh\n").context("no commands")?;
    let (commands, _) = commands.split_once("```").context("the commands have no end")?;
    let directory = tempfile::tempdir()?;
    let folder = directory.path().display();
    let script = format!("set -e -o pipefail\nplaten() {{ printf '%s' \"$PRINTED\"; }}\n{commands}")
        .replace("http://127.0.0.1:3000", &service.target(account).base_url)
        .replace("--fail-with-body -o ", &format!("--silent --show-error --fail-with-body -o {folder}/"));
    let mut bash = Command::new("bash");
    bash.args(["-c", &script]).current_dir(root()).env("PLATEN_KEY", &account.key).env("PRINTED", printed);
    let output = bash.output().context("no bash")?;
    let made = std::fs::read_dir(directory.path())?.next().context("no file")??.path();
    let bytes = std::fs::read(made)?;
    ensure!(output.status.success(), "{output:?}: {}", String::from_utf8_lossy(&bytes));
    Ok(bytes)
}

/// The page says what its XML says, which is in the file.
async fn e_invoice(stage: Stage) -> Result<()> {
    let service = stage.real_service().await?;
    let account = service.operator.account(Quota::Unlimited).await?;
    let pdf = Pdf::parse(&made_by_document(&service, &account, "e-invoice", String::new())?)?;
    let xml = std::fs::read_to_string(root().join("examples/invoice.xml"))?;
    ensure!(pdf.files()?.get("factur-x.xml").is_some_and(|file| *file == xml.as_bytes()), "another XML");
    let text = pdf.text()?;
    for (in_page, in_xml) in [("2026-0042", "2026-0042"), ("4,162.30 €", "4162.30"), ("272.30 €", "272.30")]
    {
        ensure!(text.contains(in_page) && xml.contains(&format!(">{in_xml}<")), "{in_page}: {text}");
    }
    Ok(())
}

/// The repository.
fn root() -> PathBuf {
    tests_dir().join("..")
}

fn is_expected(answer: &Answer, expected: &Expected) -> Result<()> {
    match expected {
        Expected::Png { width, height } => {
            let size = Picture::decode(answer.file("image/png")?, "image/png")?.size();
            ensure!(size.0 == *width && height.contains(&size.1), "the image has {size:?} pixels");
        }
        Expected::Pdf { pages, size, texts, outline } => {
            let pdf = Pdf::parse(answer.file("application/pdf")?)?;
            let sizes = pdf.pages()?;
            ensure!(sizes.len() == *pages, "{} pages: {}", sizes.len(), pdf.text()?);
            // Chromium rounds paper to whole pixels.
            let near = |page: &(f64, f64)| (page.0 - size.0).abs() <= 1.0 && (page.1 - size.1).abs() <= 1.0;
            ensure!(sizes.iter().all(near), "{sizes:?}");
            let text = pdf.text()?;
            for expected in *texts {
                ensure!(text.contains(expected), "without {expected:?}: {text}");
            }
            ensure!(!text.contains("{{"), "a placeholder is left: {text}");
            let titles = pdf.outline()?;
            for expected in *outline {
                ensure!(titles.iter().any(|title| title == expected), "{titles:?}");
            }
            ensure!(pdf.is_tagged()? != outline.is_empty(), "only a file with an outline is tagged");
        }
    }
    Ok(())
}

/// A value that its template does not take is a mistake in an example, although a server ignores it.
fn every_value_is_used(html: &str, options: &Value, body: &Value) -> Result<()> {
    let texts = [Some(html), options["headerHtml"].as_str(), options["footerHtml"].as_str()];
    let is_in = |text: &str| texts.iter().flatten().any(|place| place.contains(text));
    for name in body["variables"].as_object().into_iter().flat_map(|values| values.keys()) {
        ensure!(is_in(&format!("{{{{{name}}}}}")), "{name} is not used");
    }
    let mut values: Vec<&Value> = vec![&body["data"]];
    while let Some(value) = values.pop() {
        for (name, member) in value.as_object().into_iter().flatten() {
            ensure!(is_in(name), "{name} is not used");
            values.push(member);
        }
        values.extend(value.as_array().into_iter().flatten());
    }
    Ok(())
}

/// Saves pictures of the file: in full with `PLATEN_SCREENSHOTS`, and small for `docs/how-to/` with `PLATEN_PICTURES`.
fn save(stage: &Stage, example: &Example, answer: &Answer) -> Result<()> {
    if let Some(folder) = &stage.suite.settings().screenshots {
        let folder = folder.join("examples");
        std::fs::create_dir_all(&folder)?;
        for (at, page) in pages(answer, 96)?.iter().enumerate() {
            page.save(folder.join(format!("{}-{}.png", example.name, at + 1)))?;
        }
    }
    if let Some(folder) = std::env::var_os("PLATEN_PICTURES") {
        let name = format!("example-{}.png", example.name);
        side_by_side(&pages(answer, 36)?).save(Path::new(&folder).join(name))?;
    }
    Ok(())
}

/// Every request in `examples/` has a case, a template, and a document with its picture.
fn are_documented() -> Result<()> {
    let root = root();
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(root.join("examples"))? {
        let path = entry?.path();
        let file = path.file_name().context("a name")?.to_string_lossy().into_owned();
        if let Some(name) = file.strip_suffix(".json").filter(|name| !name.ends_with(".options")) {
            found.insert(name.to_owned());
        }
    }
    let tested: BTreeSet<String> = EXAMPLES.iter().map(|example| example.name.to_owned()).collect();
    ensure!(found == tested, "examples/ has {found:?}, but {tested:?} have cases");
    for name in tested {
        let document = std::fs::read_to_string(root.join(format!("docs/how-to/{name}.md")))
            .with_context(|| format!("docs/how-to/{name}.md"))?;
        let picture = format!("pictures/example-{name}.png");
        let files = ["html", "options.json", "json"].map(|extension| format!("examples/{name}.{extension}"));
        for part in files.iter().chain([&picture]) {
            ensure!(document.contains(part.as_str()), "docs/how-to/{name}.md does not name {part}");
        }
        if !root.join("docs").join(&picture).exists() {
            bail!("docs/{picture} does not exist: run scripts/document-pictures");
        }
    }
    Ok(())
}
