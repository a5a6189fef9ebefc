//! An invoice with rows, from a template and written by hand.

use std::{fmt::Write as _, sync::Arc};

use serde_json::json;

use super::filled;
use crate::support::{Shared, small};

const STYLE: &str = "<!doctype html><meta charset=utf-8><style>body{font:14px sans-serif;margin:20px}\
    table{width:100%;border-collapse:collapse}td,th{border-bottom:1px solid #ccc;padding:4px;text-align:left}\
    .n{text-align:right}</style>";

const TEMPLATE: &str =
    "<h1>{{ words.title }} {{ number }}</h1><p>{{ customer }}<p>{{ date | date(words.date) }}
<table><tr><th>{{ words.item }}<th class=n>{{ words.price }}<th class=n>{{ words.total }}</tr>
{%- for item in items %}
<tr><td>{{ item.name }}<td class=n>{{ item.price | number(2, words.group, words.decimal) }}
<td class=n>{{ (item.price * item.count) | number(2, words.group, words.decimal) }}</tr>
{%- else %}
<tr><td>{{ words.none }}</tr>
{%- endfor %}
</table>
<p class=n><b>{{ words.total }} {{ total | number(2, words.group, words.decimal) }} €</b>";

/// What differs between languages.
struct Language {
    words: [&'static str; 5],
    /// The date as it is shown, and its format.
    date: [&'static str; 2],
    group: &'static str,
    decimal: &'static str,
}

const LANGUAGES: [Language; 4] = [
    Language {
        words: ["Invoice", "Item", "Price", "Total", "Nothing"],
        date: ["November 28, 2026", "%B %-d, %Y"],
        group: ",",
        decimal: ".",
    },
    Language {
        words: ["Rechnung", "Artikel", "Preis", "Gesamt", "Keine Positionen für Sie"],
        date: ["28.11.2026", "%d.%m.%Y"],
        group: ".",
        decimal: ",",
    },
    Language {
        words: ["Facture", "Article", "Prix", "Total", "Rien à payer"],
        date: ["28/11/2026", "%d/%m/%Y"],
        group: "\u{202f}",
        decimal: ",",
    },
    Language {
        words: ["請求書", "品目", "単価", "合計", "なし"],
        date: ["2026年11月28日", "%Y年%m月%d日"],
        group: ",",
        decimal: ".",
    },
];

impl Language {
    /// An amount of cents as people write it.
    fn amount(&self, cents: u64) -> String {
        let (whole, part) = (cents / 100, cents % 100);
        let whole = match whole / 1000 {
            0 => whole.to_string(),
            thousands => format!("{thousands}{}{:03}", self.group, whole % 1000),
        };
        format!("{whole}{}{part:02}", self.decimal)
    }

    /// The page without a template.
    fn by_hand(&self, rows: u64) -> String {
        let [title, item, price, total, none] = self.words;
        let mut page = format!(
            "{STYLE}<h1>{title} 2026-7</h1><p>Müller &amp; Söhne &lt;GmbH&gt;<p>{}\n\
             <table><tr><th>{item}<th class=n>{price}<th class=n>{total}</tr>",
            self.date[0]
        );
        let mut sum = 0;
        for row in 0..rows {
            let (cents, count) = of_row(row);
            sum += cents * count;
            let (price, total) = (self.amount(cents), self.amount(cents * count));
            let name = format!("Pen &quot;{row}&quot; 鉛筆");
            let _ = write!(page, "\n<tr><td>{name}<td class=n>{price}\n<td class=n>{total}</tr>");
        }
        if rows == 0 {
            let _ = write!(page, "\n<tr><td>{none}</tr>");
        }
        page + &format!("\n</table>\n<p class=n><b>{total} {} €</b>", self.amount(sum))
    }
}

/// Cents, and how many.
fn of_row(row: u64) -> (u64, u64) {
    (1 + row * 337 % 99_991, 1 + row % 7)
}

pub(super) async fn by_hand(shared: Arc<Shared>) {
    for language in &LANGUAGES {
        for rows in [0, 1, 40, 400] {
            let [title, item, price, total, none] = language.words;
            let items: Vec<_> = (0..rows)
                .map(|row| {
                    let (cents, count) = of_row(row);
                    let price: f64 = format!("{}.{:02}", cents / 100, cents % 100).parse().unwrap();
                    json!({ "name": format!("Pen \"{row}\" 鉛筆"), "price": price, "count": count })
                })
                .collect();
            let sum: u64 = (0..rows).map(of_row).map(|(cents, count)| cents * count).sum();
            let data = json!({
                "number": "2026-7", "customer": "Müller & Söhne <GmbH>", "date": "2026-11-28T12:00:00Z",
                "items": items, "total": format!("{}.{:02}", sum / 100, sum % 100),
                "words": {
                    "title": title, "item": item, "price": price, "total": total, "none": none,
                    "date": language.date[1], "group": language.group, "decimal": language.decimal,
                },
            });
            let options = |html: &str| small(json!({ "html": html, "width": 600, "fullPage": true }));
            let template = format!("{STYLE}{TEMPLATE}");
            let by_hand = shared.file(&options(&language.by_hand(rows))).await;
            let of_template = shared.file(&filled(options("x"), &template, &data)).await;
            assert!(of_template.bytes == by_hand.bytes, "{title}, {rows} rows");
        }
    }
}
