//! Clients that generators make of the served `OpenAPI` document, tools that check the document, and a reader of invoices.
//! Their programs and settings are in `tests/clients/`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use platen_harness::settings::{Settings, tests_dir};
use platen_shared::openapi;

use crate::prelude::*;

pub(crate) fn cases(settings: &Settings) -> Vec<Case> {
    let is_installed = settings.clients.is_some();
    let clients = CLIENTS.iter().map(|client| {
        let run = move |stage| renders(stage, client);
        let case = Case::any_template(format!("clients/{}", client.generator), run);
        client.runtime.iter().fold(case, |case, runtime| case.needs_program(runtime))
    });
    let cases = clients.chain([
        Case::any_server("clients/redocly_lint", lint),
        Case::own_server("clients/schemathesis", schemathesis),
        Case::any_server("clients/factur_x", factur_x),
    ]);
    cases.map(|case| case.needs(is_installed, "PLATEN_CLIENTS")).collect()
}

/// A generator of clients and a program with its client.
struct Client {
    generator: &'static str,
    /// What the generator needs and the machine may not have.
    runtime: Option<&'static str>,
    /// The files of `tests/clients/` that are used.
    files: &'static [&'static str],
    /// Commands that generate the client, check the types of the program, and run it at last. `npm/` and `python/` are
    /// the folders of the installed commands.
    commands: &'static [&'static str],
    /// The field of the error that the program prints.
    error_field: &'static str,
}

const CLIENTS: &[Client] = &[
    Client {
        generator: "openapi-typescript",
        runtime: None,
        files: &["package.json", "tsconfig.json", "openapi_fetch.ts"],
        commands: &[
            "npm/openapi-typescript openapi.json -o generated.ts",
            "npm/tsc",
            "node openapi_fetch.js",
        ],
        error_field: "width",
    },
    Client {
        generator: "hey-api",
        runtime: None,
        files: &["package.json", "tsconfig.json", "openapi-ts.config.mjs", "hey_api.ts"],
        commands: &[
            "npm/openapi-ts -i openapi.json -f openapi-ts.config.mjs --silent --no-log-file",
            "npm/tsc",
            "node hey_api.js",
        ],
        error_field: "width",
    },
    Client {
        generator: "openapi-python-client",
        runtime: None,
        files: &["python_client.yaml", "python_client.py"],
        commands: &[
            "python/openapi-python-client generate --path openapi.json --config python_client.yaml --meta none \
             --output-path generated/platen_client",
            "python/mypy --warn-unused-ignores --follow-imports=silent python_client.py",
            "python/python python_client.py",
        ],
        error_field: "width",
    },
    Client {
        generator: "openapi-generator/python",
        runtime: Some("java"),
        files: &["openapi_generator.py"],
        commands: &[
            "python/openapi-generator-cli generate -g python -i openapi.json -o generated",
            "python/mypy --warn-unused-ignores --follow-imports=silent openapi_generator.py",
            "python/python openapi_generator.py",
        ],
        error_field: "timezone",
    },
    Client {
        generator: "openapi-generator/typescript-fetch",
        runtime: Some("java"),
        files: &["package.json", "tsconfig.json", "openapi_generator.ts"],
        commands: &[
            "python/openapi-generator-cli generate -g typescript-fetch -p importFileExtension=.js -i openapi.json -o generated",
            "npm/tsc",
            "node openapi_generator.js",
        ],
        error_field: "width",
    },
];

/// A folder with the served document and files of `tests/clients/`, in which commands run.
struct Folder {
    directory: tempfile::TempDir,
    /// What `scripts/install-clients` has installed.
    installed: PathBuf,
    target: Target,
}

impl Folder {
    async fn new(stage: &Stage, target: Target, files: &[&str]) -> Result<Self> {
        let installed = stage.suite.settings().clients.clone().context("no PLATEN_CLIENTS")?;
        let directory = tempfile::tempdir()?;
        let served = target.http.get(format!("{}{}", target.base_url, openapi::PATH)).send().await?;
        fs::write(directory.path().join("openapi.json"), served.error_for_status()?.bytes().await?)?;
        for file in files {
            fs::copy(tests_dir().join("clients").join(file), directory.path().join(file))?;
        }
        std::os::unix::fs::symlink(installed.join("node_modules"), directory.path().join("node_modules"))?;
        Ok(Self { directory, installed, target })
    }

    fn path(&self, file: &str) -> PathBuf {
        self.directory.path().join(file)
    }

    /// Runs a command that must succeed; returns its standard output.
    fn run(&self, command: &str, environment: &[(&str, String)]) -> Result<String> {
        let mut words = command.split_whitespace();
        let program = words.next().context("no program")?;
        let program = match program.split_once('/') {
            Some(("npm", name)) => self.installed.join("node_modules/.bin").join(name),
            Some(("python", name)) => self.installed.join("venv/bin").join(name),
            _ => Path::new(program).to_owned(),
        };
        let mut process = Command::new(program);
        process.args(words).current_dir(&self.directory).env("HOME", self.directory.path());
        process.env("PLATEN_URL", &self.target.base_url).env("PLATEN_KEY", &self.target.key);
        process.env("PLATEN_TEMPLATE", self.target.template_id.as_deref().unwrap_or_default());
        // The generated packages of Python, for mypy and for Python.
        process.env("MYPYPATH", "generated").env("PYTHONPATH", "generated");
        process.env("REDOCLY_TELEMETRY", "off").env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true");
        let output =
            process.envs(environment.iter().cloned()).output().with_context(|| command.to_owned())?;
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(output.status.success(), "{command}: {shown}{}", String::from_utf8_lossy(&output.stderr));
        Ok(shown)
    }
}

async fn renders(stage: Stage, client: &Client) -> Result<()> {
    let folder = Folder::new(&stage, stage.target().await?, client.files).await?;
    let mut printed = String::new();
    for command in client.commands {
        printed = folder.run(command, &[])?;
    }
    let page = Pdf::parse(&fs::read(folder.path("page.pdf"))?)?;
    let (sizes, text) = (page.pages()?, page.text()?);
    ensure!(sizes.len() == 1 && sizes[0].0 > 590.0 && sizes[0].1 < 425.0, "not one A5 landscape: {sizes:?}");
    ensure!(text.contains("Second") && !text.contains("First"), "another page: {text}");
    let picture = Picture::decode(&fs::read(folder.path("picture.png"))?, "image/png")?;
    ensure!(picture.size() == (60, 40), "{:?}", picture.size());
    picture.expect(30, 20, [0, 255, 0])?;
    let text = Pdf::parse(&fs::read(folder.path("template.pdf"))?)?.text()?;
    ensure!(["Customer: Ann", "Total: 10.5", "Paid"].iter().all(|part| text.contains(part)), "{text}");
    let error: Value = serde_json::from_str(&printed).with_context(|| printed.clone())?;
    let expected = [json!(400), json!("invalid_field"), json!(client.error_field)];
    ensure!(error.as_array().is_some_and(|it| it.len() == 4 && it[..3] == expected), "{printed}");
    ensure!(error[3].as_str().is_some_and(|text| text.contains(client.error_field)), "{printed}");
    Ok(())
}

async fn lint(stage: Stage) -> Result<()> {
    let folder = Folder::new(&stage, stage.common().await?, &[]).await?;
    folder.run("npm/redocly lint openapi.json --extends=recommended-strict", &[])?;
    Ok(())
}

/// All phases of schemathesis. Requests with a URL are for a page of the suite, so that no other host gets one.
async fn schemathesis(stage: Stage) -> Result<()> {
    let site = stage.real().await?.site.put("/schemathesis", platen_harness::site::Reply::page("<p>A page"));
    let files = ["schemathesis.toml", "schemathesis_hooks.py"];
    let folder = Folder::new(&stage, stage.common().await?, &files).await?;
    let command = format!(
        "python/st --config-file schemathesis.toml run openapi.json --url {}",
        folder.target.base_url
    );
    let environment = [
        ("PLATEN_SITE", site),
        ("SCHEMATHESIS_HOOKS", "schemathesis_hooks".to_owned()),
        ("PYTHONPATH", ".".to_owned()),
    ];
    folder.run(&command, &environment)?;
    Ok(())
}

/// Invoices of all profiles, of which the library knows `XRechnung` as its superset, and that of the documents.
async fn factur_x(stage: Stage) -> Result<()> {
    let folder = Folder::new(&stage, stage.target().await?, &["factur_x.py"]).await?;
    let read = |path: &str| fs::read_to_string(tests_dir().join(path));
    let basic = read("fixtures/invoices/basic.xml")?;
    let with = |guideline: &str| basic.replace("#compliant#urn:factur-x.eu:1p0:basic", guideline);
    let (mut command, mut expected) = ("python/python factur_x.py".to_owned(), String::new());
    for (xml, found) in [
        (read("fixtures/invoices/minimum.xml")?, "factur-x.xml minimum"),
        (read("fixtures/invoices/basic-wl.xml")?, "factur-x.xml basicwl"),
        (basic.clone(), "factur-x.xml basic"),
        (with(""), "factur-x.xml en16931"),
        (with("#conformant#urn:factur-x.eu:1p0:extended"), "factur-x.xml extended"),
        (with("#compliant#urn:xeinkauf.de:kosit:xrechnung_3.0"), "xrechnung.xml en16931"),
        (read("../examples/invoice.xml")?, "factur-x.xml en16931"),
    ] {
        let body = json!({ "html": "<title>Invoice</title>", "format": "pdf", "invoiceXml": xml });
        let answer = folder.target.post(RENDER, body.to_string()).send().await?;
        let file = format!("{}.pdf", expected.lines().count());
        fs::write(folder.path(&file), answer.file("application/pdf")?)?;
        command = format!("{command} {file}");
        expected = format!("{expected}{found}\n");
    }
    let printed = folder.run(&command, &[])?;
    ensure!(printed == expected, "{printed}");
    Ok(())
}
