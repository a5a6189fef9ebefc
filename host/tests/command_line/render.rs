//! Exit statuses of `platen render`.

use std::fs;

use super::Platen;

#[test]
fn a_render_has_exit_statuses() {
    let platen = Platen::new();
    platen.write("page.html", "<h1>{{ name }}</h1>");
    platen.write("old.pdf", "old");
    for (arguments, expected, message) in [
        (&["render", "page.html", "-o", "a.pdf"][..], 0, ""),
        (&["render", "page.html", "-o", "b.pdf", "--variables", r#"{"name":"x"}"#], 0, ""),
        (&["render", "page.html", "-o", "old.pdf", "--variables", "{}"], 2, "\"name\""),
        (&["render", "page.html", "-o", "old.pdf", "--scale", "9"], 2, "\"scale\""),
        (&["render", "page.html", "-o", "old.pdf", "--no-such-option"], 2, "--no-such-option"),
        (&["render", "missing.html", "-o", "old.pdf"], 2, "missing.html"),
        (&["render", "http://site.invalid/", "-o", "old.pdf"], 3, "could not be resolved"),
        (&["render", "page.html", "-o", "missing/a.pdf"], 1, "missing/a.pdf"),
        (&["render", "page.html", "-o", "a.pdf", "--chromium", "/nonexistent"], 1, "/nonexistent"),
        (&["render", "-", "-o", "a.pdf", "--watch"], 2, "--watch"),
        (&["render", "page.html", "-o", "-", "--watch"], 2, "--output"),
    ] {
        let (status, output, errors) = platen.run(arguments);
        assert!(status == expected && output.is_empty(), "{arguments:?}: {status} {errors}");
        assert!(errors.contains(message) && (expected != 0 || errors.is_empty()), "{arguments:?}: {errors}");
    }
    let (status, _, errors) = platen.run(&["render", "page.html", "-o", "a.pdf", "--verbose"]);
    let is_told = errors.contains("sheets: 1\nerrors: 0\nfailed requests: 0\n");
    assert!(status == 0 && is_told, "{status} {errors}");
    assert!(fs::read(platen.path("a.pdf")).expect("a file").starts_with(b"%PDF"));
    assert_eq!(fs::read(platen.path("old.pdf")).expect("a file"), b"old");

    let output = platen.pipe(&["render", "-", "-o", "-", "--format", "webp"], "<p>hello");
    assert!(output.status.success() && output.stdout.starts_with(b"RIFF"));
}
