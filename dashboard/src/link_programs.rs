//! Programs that sign the addresses of a link, in several languages (`dashboard/templates/snippets/links/`).
//!
//! Invariant: each program makes the address that [`LinkFile::signed`](platen_shared::link::LinkFile::signed) makes. None
//! contains the secret, which they read from the environment variable `PLATEN_LINK_SECRET`.

use askama::Template;
use platen_shared::link::LinkFile;

/// A program as a page shows it.
#[derive(Debug)]
pub(crate) struct LinkProgram {
    /// Identifies it on the page.
    pub(crate) id: &'static str,
    pub(crate) language: &'static str,
    pub(crate) program: String,
}

#[derive(Debug, Clone, Copy)]
enum Language {
    Node,
    WebCrypto,
    Python,
    Php,
    Go,
    Ruby,
    Rust,
}

/// Each language with its identifier and name, in the order in which pages show them.
const LANGUAGES: [(Language, &str, &str); 7] = [
    (Language::Node, "node", "JavaScript (Node.js)"),
    (Language::WebCrypto, "webcrypto", "JavaScript (Web Crypto)"),
    (Language::Python, "python", "Python"),
    (Language::Php, "php", "PHP"),
    (Language::Go, "go", "Go"),
    (Language::Ruby, "ruby", "Ruby"),
    (Language::Rust, "rust", "Rust"),
];

impl Language {
    /// The text as a literal of the language.
    fn literal(self, text: &str) -> String {
        match self {
            // Strings of JSON are strings of these languages as well.
            Self::Node | Self::WebCrypto | Self::Python | Self::Go => {
                serde_json::Value::from(text).to_string()
            }
            // Between double quotes they insert variables.
            Self::Php | Self::Ruby => format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'")),
            Self::Rust => format!("{text:?}"),
        }
    }
}

#[derive(Template)]
#[template(path = "snippets/links/program.txt")]
struct Program<'f> {
    language: Language,
    /// Scheme and host.
    server: &'f str,
    link: &'f str,
    file: &'f str,
    /// Literals.
    values: Vec<(String, String)>,
}

/// The programs that sign the address of a file on this server.
pub(crate) fn all(server: &str, file: &LinkFile) -> askama::Result<Vec<LinkProgram>> {
    let program = |(language, id, name): (Language, _, _)| {
        let pairs = file.values.iter();
        let values = pairs.map(|(name, value)| (language.literal(name), language.literal(value))).collect();
        let (link, name_of_file) = (file.link.as_str(), &file.name());
        let program = Program { language, server, link, file: name_of_file, values }.render()?;
        Ok(LinkProgram { id, language: name, program })
    };
    LANGUAGES.into_iter().map(program).collect()
}

#[cfg(test)]
mod tests {
    use platen_shared::link::{LinkId, RANDOM_BYTES};

    use super::*;

    fn programs(values: &[(&str, &str)]) -> Vec<LinkProgram> {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let link = LinkId::from_random([0; RANDOM_BYTES]);
        all("http://127.0.0.1:3000", &LinkFile::new(link, "card.png", values).unwrap()).unwrap()
    }

    #[test]
    fn no_value_ends_its_literal() {
        let text = "'\"`\\ ${x} #{x} {$x}\n";
        for LinkProgram { id, program, .. } in programs(&[("title", text)]) {
            let literal = match id {
                "php" | "ruby" => "'\\'\"`\\\\ ${x} #{x} {$x}\n'",
                _ => "\"'\\\"`\\\\ ${x} #{x} {$x}\\n\"",
            };
            assert!(program.contains(literal), "{program}");
        }
        assert!(programs(&[]).iter().all(|it| !it.program.contains("title")));
    }

    /// The program in `tests/` is compiled and run there.
    #[test]
    fn the_program_in_rust_is_the_one_that_is_compiled() {
        let compiled = include_str!("../../tests/examples/sign_link.rs");
        let title = "Größe + 1, in a title that is too long for one line of the program";
        let values = [("title", title), ("author", "O'Neil \"*\"")];
        let program = &programs(&values)[6].program;
        let shown = program.trim_start_matches("// With the crates `base64`, `hmac` and `sha2`.\n");
        assert!(compiled.trim_end().ends_with(shown.trim_end()), "{program}");
    }
}
