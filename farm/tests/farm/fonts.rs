//! Text in the scripts of the world, with the fonts that `scripts/lib.sh` installs.

use std::sync::Arc;

use serde_json::json;

use crate::{
    Test,
    support::{GREEN, Shared, middle, request},
};

pub(crate) const TESTS: &[Test] =
    &[("text in all common scripts has glyphs", |s| Box::pin(all_have_glyphs(s)))];

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
        let file = shared.render(&request(&body)).await.unwrap();
        assert_eq!(middle(&file), expected, "{name}: install the fonts of scripts/lib.sh");
    }
}
