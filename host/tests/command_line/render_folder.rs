//! The files of the folder of a page, with `platen render`.

use std::fs;

use super::Platen;

#[test]
fn a_page_has_the_files_of_its_folder() {
    let platen = Platen::new();
    let script =
        |path: &str| format!("document.body.style.background = (await fetch('{path}')).ok ? 'red' : 'lime'");
    fs::create_dir_all(platen.path("site/sub")).expect("a folder");
    platen.write("secret", "s");
    platen.write("site/.env", "s");
    platen.write("site/style.css", "html { background: lime }");
    fs::File::create(platen.path("site/large")).expect("a file").set_len(21 << 20).expect("space");
    nix::unistd::mkfifo(&platen.path("site/pipe"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    std::os::unix::fs::symlink("../secret", platen.path("site/out")).expect("a link");
    let link = |path: &str| format!("<!doctype html><link rel=stylesheet href='{path}'>");
    platen.write("site/index.html", &link("style.css"));
    platen.write("site/sub/page.html", &link("../style.css"));
    platen.write("inline.html", "<!doctype html><style>html { background: lime }</style>");
    let lime = platen.run(&["render", "inline.html", "-o", "lime.png"]);
    assert_eq!(lime.0, 0, "{}", lime.2);
    let is_lime = || {
        fs::read(platen.path("a.png")).expect("a file") == fs::read(platen.path("lime.png")).expect("a file")
    };
    for (arguments, expected) in [
        (&["site/index.html"][..], ""),
        (&["site/sub/page.html", "--assets", "site"], ""),
        (&["site/index.html", "--assets", "site/sub"], "warning: style.css: not found\n"),
        (&["site/index.html", "--assets", "{}"], "warning: style.css: not found\n"),
        (&["site/sub/page.html"], "warning: style.css: not found\n"),
    ] {
        let (status, _, errors) = platen.run(&[&["render", "-o", "a.png"], arguments].concat());
        assert_eq!((status, errors.as_str()), (0, expected), "{arguments:?}");
        assert_eq!(is_lime(), expected.is_empty(), "{arguments:?}");
    }
    let output = platen.pipe(&["render", "-", "-o", "a.png", "--assets", "site"], &link("style.css"));
    assert!(output.status.success() && is_lime());
    let output = platen.pipe(&["render", "-", "-o", "a.png"], &link("style.css"));
    assert!(output.status.success() && !is_lime());
    for path in
        ["../../etc/passwd", "../secret", "..%2fsecret", ".env", "out", "pipe", "large", "file:///etc/passwd"]
    {
        let page = format!(
            "<!doctype html><body style='height: 100vh; margin: 0'><script type=module>try {{ {} }} \
             catch {{ document.body.style.background = 'lime' }}</script>",
            script(path)
        );
        platen.write("site/hostile.html", &page);
        let (status, _, errors) = platen.run(&["render", "site/hostile.html", "-o", "a.png"]);
        assert!(status == 0 && is_lime(), "{path}: {status} {errors}");
        // Chromium itself refuses a file: no request is sent.
        assert!(errors.starts_with("warning: ") || path.starts_with("file:"), "{path}: {errors}");
    }
    for (arguments, expected, message) in [
        (&["site/index.html", "--fail-on", "failedRequests", "--assets", "{}"][..], 1, "/style.css 404"),
        (&["site/index.html", "--assets", "none"], 2, "none cannot be opened"),
        (
            &["site/index.html", "--assets", "site", "--base-url", "https://example.com/"],
            2,
            "exclude each other",
        ),
        (&["https://example.com/", "--assets", "site"], 2, "the page is a URL"),
    ] {
        let (status, _, errors) = platen.run(&[&["render", "-o", "a.png"], arguments].concat());
        assert!(status == expected && errors.contains(message), "{arguments:?}: {status} {errors}");
    }
}
