//! The files of the folder of a page, with `platen render`.

use std::fs;

use super::Platen;

/// The beginning of a page that is lime when its script, a module, has ended.
const MODULE: &str = "<!doctype html><body style='height: 100vh; margin: 0'><script type=module>\
    const check = (ok, what) => { if (!ok) throw new Error(what) };";
const END: &str = "; document.body.style.background = 'lime'; window.done = true</script>";

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
    std::os::unix::fs::symlink(".env", platen.path("site/shown")).expect("a link");
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
    for path in [
        "../../etc/passwd",
        "../secret",
        "..%2fsecret",
        ".env",
        "out",
        "shown",
        "pipe",
        "large",
        "file:///etc/passwd",
    ] {
        let page = format!(
            "<!doctype html><body style='height: 100vh; margin: 0'><script type=module>try {{ {} }} \
             catch {{ document.body.style.background = 'lime' }}</script>",
            script(path)
        );
        platen.write("site/hostile.html", &page);
        let wait = ["--wait-for-function", "document.body.style.background"];
        let (status, _, errors) =
            platen.run(&[&["render", "site/hostile.html", "-o", "a.png"][..], &wait].concat());
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

#[test]
fn a_folder_answers_as_a_static_server() {
    let platen = Platen::new();
    for folder in ["docs", "empty"] {
        fs::create_dir(platen.path(folder)).expect("a folder");
    }
    platen.write("docs/index.html", "index");
    // Ten minutes of silence, of which a player reads parts.
    let (rate, bytes) = (8_000_u32, 4_800_000_u32);
    let mut tone = b"RIFF".to_vec();
    for part in [
        &(36 + bytes).to_le_bytes()[..],
        b"WAVEfmt ",
        &16_u32.to_le_bytes(),
        &[1, 0, 1, 0],
        &rate.to_le_bytes(),
        &rate.to_le_bytes(),
        &[1, 0, 8, 0],
        b"data",
        &bytes.to_le_bytes(),
    ] {
        tone.extend(part);
    }
    tone.resize(44 + bytes as usize, 128);
    fs::write(platen.path("tone.wav"), &tone).expect("a file");
    let script = "
        const index = await fetch('docs?a=b');
        check(index.redirected && index.url.endsWith('.invalid/docs/?a=b'), index.url);
        check(await index.text() === 'index' && index.headers.get('content-type') === 'text/html', 'its text');
        check(await (await fetch('docs/')).text() === 'index', 'the index of a folder');
        check((await fetch('empty/')).status === 404 && (await fetch('empty')).status === 404, 'no index');
        const part = await fetch('tone.wav', { headers: { range: 'bytes=0-3' } });
        check(part.status === 206 && part.headers.get('content-range') === 'bytes 0-3/4800044', part.status);
        check(await part.text() === 'RIFF', 'its bytes');
        const rest = await fetch('tone.wav', { headers: { range: 'bytes=4800044-' } });
        check(rest.status === 416, rest.status);
        const audio = new Audio('tone.wav');
        const event = name => new Promise((found, failed) => Object.assign(audio, { [name]: found, onerror: failed }));
        await event('onloadedmetadata');
        audio.currentTime = 590;
        await event('onseeked');
        check(audio.duration === 600 && audio.currentTime === 590, audio.currentTime)";
    platen.write("index.html", &format!("{MODULE}{script}{END}"));
    let (status, _, errors) =
        platen.run(&["render", "index.html", "-o", "a.png", "--wait-for-function", "window.done"]);
    assert_eq!(status, 0, "{errors}");
    let mut warnings: Vec<_> = errors.lines().collect();
    warnings.sort_unstable();
    assert_eq!(
        warnings,
        ["warning: GET /tone.wav 416", "warning: empty/: not found", "warning: empty/: not found"]
    );
}

#[test]
fn a_page_gets_a_limited_number_of_bytes() {
    let platen = Platen::new();
    fs::File::create(platen.path("large")).expect("a file").set_len(20 << 20).expect("space");
    platen.write("small", "small");
    let script = "
        const get = async path => (await fetch(path, { method: 'HEAD' })).status;
        for (let i = 0; i < 12; i++) check(await get('large?' + i) === 200, i);
        check((await fetch('large')).status === 503 && await get('small') === 200, 'the limit')";
    platen.write("index.html", &format!("{MODULE}{script}{END}"));
    let (status, _, errors) =
        platen.run(&["render", "index.html", "-o", "a.png", "--wait-for-function", "window.done"]);
    assert_eq!(
        (status, errors.as_str()),
        (0, "warning: large: beyond the 256 MB that a page gets from its folder\n")
    );
}
