//! The programs of `docs/quick-start.md`, each with its runtime if the machine has it.

use std::{path::Path, process::Command};

use platen_harness::settings::tests_dir;

use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    LANGUAGES
        .iter()
        .map(|language| {
            let run = move |stage| runs(stage, language);
            language.where_it_sends(Case::any_server(format!("snippets/{}", language.block), run))
        })
        .collect()
}

/// A language of the document.
pub(crate) struct Language {
    /// The name of its code block.
    pub(crate) block: &'static str,
    /// The name of the file of its program.
    file: &'static str,
    command: &'static [&'static str],
}

impl Language {
    /// The command that runs a program in a file; empty for a compiled one.
    pub(crate) fn command(&self) -> &'static [&'static str] {
        self.command
    }

    /// The case on machines with the language.
    pub(crate) fn where_it_runs(&self, case: Case) -> Case {
        self.command.first().map_or(case.clone(), |program| case.needs_program(program))
    }

    /// The case on machines where a program in the language can send requests.
    pub(crate) fn where_it_sends(&self, case: Case) -> Case {
        let case = self.where_it_runs(case);
        if self.block != "php" {
            return case;
        }
        let output = Command::new("php").args(["-r", "exit((int) !extension_loaded('curl'));"]).output();
        case.needs(output.is_ok_and(|output| output.status.success()), "php with curl")
    }
}

pub(crate) const LANGUAGES: &[Language] = &[
    Language { block: "sh", file: "render.sh", command: &["bash"] },
    Language { block: "js", file: "render.mjs", command: &["node"] },
    Language { block: "python", file: "render.py", command: &["python3"] },
    Language { block: "go", file: "render.go", command: &["go", "run"] },
    Language { block: "php", file: "render.php", command: &["php"] },
    Language { block: "rust", file: "render.rs", command: &[] },
];

const QUICK_START: &str = env!("CARGO_BIN_EXE_quick-start");
const ADDRESS: &str = "http://127.0.0.1:3000";

async fn runs(stage: Stage, language: &'static Language) -> Result<()> {
    let target = stage.target().await?;
    let document = std::fs::read_to_string(tests_dir().join("../docs/quick-start.md"))?;
    let (_, program) = document.split_once(&format!("```{}\n", language.block)).context("no such block")?;
    let (program, _) = program.split_once("```").context("the block has no end")?;
    if language.block == "rust" {
        let compiled = std::fs::read_to_string(tests_dir().join("examples/quick_start.rs"))?;
        ensure!(compiled.ends_with(program), "tests/examples/quick_start.rs is another program");
    }
    let directory = tempfile::tempdir()?;
    let output = run(language, (program, QUICK_START), &target, directory.path())?;
    ensure!(output.status.success(), "{output:?}");
    let file = directory.path().join("invoice.pdf");
    let text = Pdf::parse(&std::fs::read(&file)?)?.text()?;
    ensure!(
        text.contains("Invoice 42") && text.contains("€ 10.50") && text.contains("Page 1 of 1"),
        "{text}"
    );

    // A failure is noticed, and its message is shown or in the file of curl. That of a key has no code.
    let stranger = target.with_unknown_key();
    let failing = program.replace("20mm", "20 mm");
    for (program, target, expected) in
        [(program, &stranger, "Invalid API key"), (&failing, &target, "invalid_field")]
    {
        if language.block == "rust" && program == failing {
            continue;
        }
        let _ = std::fs::remove_file(&file);
        let output = run(language, (program, QUICK_START), target, directory.path())?;
        let mut shown = [output.stdout, output.stderr].concat();
        shown.extend(std::fs::read(&file).unwrap_or_default());
        let shown = String::from_utf8_lossy(&shown);
        let is_shown =
            shown.contains(expected) && !["undefined", "None", "null"].iter().any(|it| shown.contains(it));
        ensure!(!output.status.success() && is_shown, "{shown}");
    }
    Ok(())
}

/// Runs a program, or the compiled one in its place.
pub(crate) fn run(
    language: &Language,
    (program, compiled): (&str, &str),
    target: &Target,
    directory: &Path,
) -> Result<std::process::Output> {
    let mut command = match language.command {
        [] => {
            // The compiled program has the address of the document; its client sends to the server as to a proxy.
            let mut command = Command::new(compiled);
            command.env("HTTP_PROXY", &target.base_url);
            command
        }
        [name, arguments @ ..] => {
            std::fs::write(directory.join(language.file), program.replace(ADDRESS, &target.base_url))?;
            let mut command = Command::new(name);
            command.args(arguments).arg(language.file);
            command
        }
    };
    // Go keeps its cache in the home folder.
    command.current_dir(directory).env("PLATEN_KEY", &target.key).env("HOME", directory);
    command.output().context(language.file)
}
