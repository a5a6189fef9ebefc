//! The program that the dashboard shows for a link, with the crates `base64`, `hmac` and `sha2`.

use std::{collections::BTreeMap, error::Error};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

const LINK: &str = "lnk_000000000000000000000000000000001tCLNu";

fn encode(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

fn address(file: &str, values: &BTreeMap<&str, &str>) -> Result<String, Box<dyn Error>> {
    let pair = |(name, value): (&&str, &&str)| format!("{}={}", encode(name), encode(value));
    let query = values.iter().map(pair).collect::<Vec<_>>().join("&");
    let rest = if query.is_empty() { file.to_owned() } else { format!("{file}?{query}") };
    let mut mac = Hmac::<Sha256>::new_from_slice(std::env::var("PLATEN_LINK_SECRET")?.as_bytes())?;
    mac.update(format!("{LINK}/{rest}").as_bytes());
    let signature = URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes());
    Ok(format!("http://127.0.0.1:3000/v1/links/{LINK}/{signature}/{rest}"))
}

fn main() -> Result<(), Box<dyn Error>> {
    let values = BTreeMap::from([
        ("author", "O'Neil \"*\""),
        ("title", "Größe + 1, in a title that is too long for one line of the program"),
    ]);
    println!("{}", address("card.png", &values)?);
    Ok(())
}
