//! Programs that send a request, in several languages (`dashboard/templates/snippets/`).
//!
//! Invariant: each program sends exactly the bytes of the body. A long body is not in the program, which reads it from
//! the file `request.json`.

use askama::Template;

use super::body::Request;

/// A longer body is read from a file.
const MAX_INLINE_BYTES: usize = 16 * 1024;
/// The name of that file.
pub(crate) const FILE_NAME: &str = "request.json";

/// A program as a page shows it.
#[derive(Debug)]
pub(crate) struct Snippet {
    /// Identifies it on the page.
    pub(crate) id: &'static str,
    pub(crate) language: &'static str,
    pub(crate) program: String,
}

/// Whether the programs read the body of this request from a file.
pub(crate) fn read_a_file(request: &Request) -> bool {
    request.shown.len() > MAX_INLINE_BYTES
}

#[derive(Debug, Clone, Copy)]
enum Language {
    Curl,
    JavaScript,
    Python,
    Go,
    Php,
    Rust,
}

/// Each language with its identifier and name, in the order in which pages show them.
const LANGUAGES: [(Language, &str, &str); 6] = [
    (Language::Curl, "curl", "curl"),
    (Language::JavaScript, "javascript", "JavaScript"),
    (Language::Python, "python", "Python"),
    (Language::Go, "go", "Go"),
    (Language::Php, "php", "PHP"),
    (Language::Rust, "rust", "Rust"),
];

#[derive(Template)]
#[template(path = "snippets/program.txt")]
struct Program<'r> {
    language: Language,
    url: &'r str,
    file: &'r str,
    /// `None` if it is read from a file.
    body: Option<&'r str>,
}

/// The languages without programs.
pub(crate) fn none() -> Vec<Snippet> {
    LANGUAGES.map(|(_, id, language)| Snippet { id, language, program: String::new() }).into()
}

/// The programs that send a request to the server at this address.
pub(crate) fn all(base_url: &str, request: &Request) -> askama::Result<Vec<Snippet>> {
    let url = &format!("{base_url}{}", request.endpoint.path());
    let file = &format!("file.{}", request.extension());
    let body = (!read_a_file(request)).then_some(request.shown.as_str());
    let snippet = |(language, id, name)| {
        let program = Program { language, url, file, body }.render()?;
        Ok(Snippet { id, language: name, program })
    };
    LANGUAGES.into_iter().map(snippet).collect()
}

/// The `#` that delimit a raw string of Rust that holds the body: one more than follow any of its quotation marks.
fn hashes(body: &str) -> String {
    let after_marks = body.split('"').skip(1);
    let counts = after_marks.map(|text| text.bytes().take_while(|byte| *byte == b'#').count());
    "#".repeat(counts.max().unwrap_or(0) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::Form;

    fn programs(form: &str) -> Vec<Snippet> {
        let request = Request::of(&Form::parse(form.as_bytes())).unwrap();
        all("http://127.0.0.1:3000", &request).unwrap()
    }

    #[test]
    fn no_value_ends_the_quotes() {
        let html = "'; rm -rf ~; '''\"\"\" ` ${x} `+os.Exit(1)+` \nJSON;\n \"#; \"##; \\";
        let form: String =
            url::form_urlencoded::Serializer::new(String::new()).append_pair("html", html).finish();
        let programs = programs(&form);
        assert_eq!(programs.len(), 6);
        for Snippet { language, program, .. } in &programs {
            let body = "{\n  \"html\": \"\\u0027; rm -rf ~; \\u0027\\u0027\\u0027\\\"\\\"\\\" \\u0060 \\u0024{x} \\u0060+os.Exit(1)+\\u0060 \
                        \\nJSON;\\n \\\"#; \\\"##; \\\\\"\n}";
            assert_eq!(program.matches(body).count(), 1, "{language}: {program}");
        }
        assert!(programs[5].program.contains("r###\"{"), "{}", programs[5].program);
        // The time grows with the length only.
        let many = "#".repeat(1_000_000);
        assert_eq!(hashes(&format!("{many} \"{many}\" #")).len(), many.len() + 1);
    }

    #[test]
    fn long_bodies_are_in_a_file() {
        let form = format!("html={}", "a".repeat(MAX_INLINE_BYTES));
        for Snippet { program, .. } in programs(&form) {
            assert!(program.contains(FILE_NAME) && program.len() < 2_000, "{program}");
        }
    }

    /// The program in `tests/` is compiled and run there.
    #[test]
    fn the_program_in_rust_is_the_one_that_is_compiled() {
        let compiled = include_str!("../../../tests/examples/playground.rs");
        let form =
            "html=%3Ch1%3EPlayground%3C%2Fh1%3E%3Cp%3E%22%23it%27s%3C%2Fp%3E&format=pdf&margin.top=2cm";
        let program = &programs(form)[5].program;
        assert!(
            compiled
                .trim_end()
                .ends_with(program.trim_start_matches("// With the crates `reqwest` and `tokio`.\n")),
            "{program}"
        );
    }
}
