//! The program that the playground shows for a request, with the crates `reqwest` and `tokio`.

use platen_harness::tls::reqwest;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let body = r##"{
  "html": "<h1>Playground</h1><p>\"#it\u0027s</p>",
  "format": "pdf",
  "margin": { "top": "2cm" }
}"##;
    let response = reqwest::Client::new()
        .post("http://127.0.0.1:3000/v1/render")
        .bearer_auth(std::env::var("PLATEN_KEY")?)
        .header("content-type", "application/json")
        .body(body)
        .send()
        .await?;
    let status = response.status();
    if !status.is_success() {
        return Err(format!("{status}: {}", response.text().await?).into());
    }
    std::fs::write("file.pdf", response.bytes().await?)?;
    Ok(())
}
