//! The program of `docs/quick-start.md`.

use platen_harness::tls::reqwest;
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let response = reqwest::Client::new()
        .post("http://127.0.0.1:3000/v1/render")
        .bearer_auth(std::env::var("PLATEN_KEY")?)
        .json(&json!({
            "html": "<h1>Invoice 42</h1><p>Total: € 10.50</p>",
            "format": "pdf",
            "margin": "20mm",
            "footerHtml": "<div style='width: 100%; text-align: center'>\
                Page <span class=pageNumber></span> of <span class=totalPages></span></div>",
        }))
        .send()
        .await?;
    let status = response.status();
    if !status.is_success() {
        return Err(format!("{status}: {}", response.text().await?).into());
    }
    std::fs::write("invoice.pdf", response.bytes().await?)?;
    Ok(())
}
