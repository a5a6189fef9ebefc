//! Text in the scripts of the world, with the fonts that `scripts/lib.sh` installs.

use std::sync::Arc;

use serde_json::json;

use crate::support::{GREEN, Shared, middle, picture, request};

tests! {
    "text in all common scripts has glyphs" => all_have_glyphs,
    "the language chooses the form of Chinese characters" => forms_of_characters,
    "Latin text and headers have the metrics of Arial" => latin_fonts,
    "Calibri has its metrics and Cambria has a font" => office_fonts,
}

/// A name, a language and a text each.
const LINES: &[(&str, &str, &str)] = &[
    ("Latin", "cs", "Příliš žluťoučký kůň façade Straße ÞðŁæœ"),
    ("Greek", "el", "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία"),
    ("Cyrillic", "uk", "Щастям б'єш жук їх глицю в фон й ґедзь пріч ёъыэ"),
    ("simplified Chinese", "zh-Hans", "我能吞下玻璃而不伤身体门骨直"),
    ("traditional Chinese", "zh-Hant", "我能吞下玻璃而不傷身體門骨直"),
    ("Japanese", "ja", "私はガラスを食べられますひらがなカタカナ骨直"),
    ("Korean", "ko", "나는유리를먹을수있어요다람쥐헌쳇바퀴"),
    ("Arabic", "ar", "أناقادرعلىأكلالزجاجوهذالايؤلمني"),
    ("Hebrew", "he", "אנייכוללאכולזכוכיתוזהלאמזיקלי"),
    ("Devanagari", "hi", "मकचसकतहञझऋषय"),
    ("Thai", "th", "ฉันกนกระจกไดแตมนไมทำใหฉนเจบ"),
    ("emoji", "en", "😀🎉✅🚀👍"),
];

/// Draws each character, and compares it with one that no font has. An emoji must have colours as well.
const PAGE: &str = "<!doctype html><canvas id=c width=60 height=60></canvas><script>\
    const drawing = c.getContext('2d', { willReadFrequently: true }); drawing.font = '40px sans-serif';\
    const draw = text => { drawing.clearRect(0, 0, 60, 60); drawing.fillText(text, 2, 45);\
        return drawing.getImageData(0, 0, 60, 60).data };\
    const missing = ['\\u{10FFFD}', '\\u{378}'].map(text => draw(text).join());\
    const isColoured = data => data.some((_, at) => at % 4 === 0 && data[at + 3] && (data[at] !== data[at + 1] || data[at] !== data[at + 2]));\
    const bad = Array.from(TEXT.replaceAll(' ', '')).filter(text => { const data = draw(text), pixels = data.join();\
        return missing.includes(pixels) || !data.some(value => value) || IS_EMOJI && !isColoured(data) });\
    document.documentElement.style.background = bad.length ? 'red' : 'green'</script>";

async fn all_have_glyphs(shared: Arc<Shared>) {
    let cases = LINES.iter().map(|(name, language, text)| (*name, *language, *text, GREEN));
    // The test can fail.
    let controls = [("unassigned", "en", "a\u{10FFFE}", [255, 0, 0]), ("no emoji", "en", "a", [255, 0, 0])];
    for (name, language, text, expected) in cases.chain(controls) {
        let page = PAGE.replace("TEXT", &json!(text).to_string());
        let page = page.replace("IS_EMOJI", if name.contains("emoji") { "true" } else { "false" });
        let page = page.replacen("<canvas", &format!("<html lang={language}><canvas"), 1);
        let body = json!({ "html": page, "width": 64, "height": 200 });
        let file = shared.file(&request(&body)).await;
        assert_eq!(middle(&file), expected, "{name}: install the fonts of scripts/lib.sh");
    }
}

async fn forms_of_characters(shared: Arc<Shared>) {
    // Each of these characters has four forms.
    let draw = async |language: &str, family: &str| {
        let html = format!(
            "<!doctype html><p lang={language} style=\"font: 60px/90px Arial{family}; margin: 0\">偉分化婦微"
        );
        let body = json!({ "html": html, "width": 320, "height": 90 });
        picture(&shared.file(&request(&body)).await.bytes)
    };
    let forms = [("ja", "JP"), ("zh-Hans", "SC"), ("zh-Hant", "TC"), ("ko", "KR")];
    let mut named = Vec::new();
    for (_, form) in forms {
        named.push((form, draw("en", &format!(", 'Noto Sans CJK {form}'")).await));
    }
    for (language, form) in forms {
        let drawn = draw(language, "").await;
        // Not equal: Chromium hints the glyphs of a font that it has chosen itself.
        let difference = |other: &image::RgbImage| -> u64 {
            drawn.iter().zip(other.iter()).map(|(one, other)| u64::from(one.abs_diff(*other))).sum()
        };
        let (nearest, _) = named.iter().min_by_key(|(_, other)| difference(other)).unwrap();
        assert_eq!(*nearest, form, "{language}: install the fonts of scripts/lib.sh");
    }
}

/// The fonts in a file, without those that it has several times.
fn fonts_of(file: &[u8]) -> Vec<String> {
    let file = String::from_utf8_lossy(file);
    let mut fonts: Vec<_> = file
        .split("/BaseFont /")
        .skip(1)
        .filter_map(|rest| rest.split(char::is_whitespace).next()?.split_once('+'))
        .map(|(_, name)| name.to_owned())
        .collect();
    fonts.sort_unstable();
    fonts.dedup();
    fonts
}

/// Also where many fonts are installed, so that a document is the same on all machines.
async fn latin_fonts(shared: Arc<Shared>) {
    let text = "The quick brown fox 0123456789";
    let html = format!(
        "<!doctype html><p>{text}<p style='font-family: Unknown, sans-serif'>{text}\
         <p style='font-family: serif'>{text}<p style='font-family: monospace'>{text}\
         <p style='font-family: Arial'>{text}<p style='font-family: Helvetica'>{text}\
         <p style='font-family: Times New Roman'>{text}<p style='font-family: Courier New'>{text}"
    );
    let header = format!("<b>{text}</b>");
    let body = json!({ "html": html, "format": "pdf", "headerHtml": header, "footerHtml": text });
    let file = shared.file(&request(&body)).await;
    assert_eq!(
        fonts_of(&file.bytes),
        ["LiberationMono", "LiberationSans", "LiberationSans-Bold", "LiberationSerif"]
    );
}

async fn office_fonts(shared: Arc<Shared>) {
    let html = "<!doctype html><p style='font-family: Calibri'>Calibri <b>bold</b> <i>italic <b>both</b></i>\
                <p style='font-family: Cambria, serif'>Cambria";
    let file = shared.file(&request(&json!({ "html": html, "format": "pdf" }))).await;
    let carlito = ["Carlito", "Carlito-Bold", "Carlito-BoldItalic", "Carlito-Italic"];
    assert_eq!(fonts_of(&file.bytes), [&["Caladea-Regular"][..], &carlito].concat());
    // Widths of Calibri in thousandths of its size.
    let widths = [
        (' ', 226),
        ('0', 507),
        ('A', 579),
        ('B', 544),
        ('a', 479),
        ('b', 525),
        ('e', 498),
        ('m', 799),
        ('€', 507),
    ];
    let cell = |(character, width): &(char, u32)| {
        ["<pre data-width=", &width.to_string(), ">", &character.to_string().repeat(10), "</pre>"].concat()
    };
    let cells = widths.iter().map(cell).collect::<String>();
    let html = format!(
        "<!doctype html><html style='background: red'><style>pre {{ font: 100px Calibri; width: max-content }}</style>{cells}\
         <script>const bad = [...document.querySelectorAll('pre')].filter(it => Math.abs(it.getBoundingClientRect().width -\
         it.dataset.width) > 1); if (!bad.length) document.documentElement.style.background = 'green'</script>"
    );
    shared.expect_green(&request(&json!({ "html": html, "width": 64, "height": 64 }))).await;
}
