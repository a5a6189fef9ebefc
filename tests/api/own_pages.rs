//! What `platen up` responds to itself, and the OpenAPI document that every server has.

use http::{Method, header};

use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_server("own_pages/openapi_document", document),
        Case::any_server("own_pages/have_types_and_policies", pages).not_on_spin(NOT_THERE),
        Case::any_server("own_pages/accept_get_and_head", methods).not_on_spin(NOT_THERE),
    ]
}

pub(crate) const NOT_THERE: &str = "Spin has no other paths than those of the components";

async fn document(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let get = |method| target.post("/v1/openapi.json", "").method(method);
    let answer = get(Method::GET).send().await?;
    ensure!(
        answer.status == 200 && answer.header("content-type")? == "application/json",
        "{}",
        answer.summary()
    );
    let document: Value = serde_json::from_slice(&answer.body)?;
    ensure!(
        document["openapi"] == "3.1.1" && document["servers"][0]["url"] == "/",
        "{}",
        document["servers"]
    );
    let answer = get(Method::HEAD).send().await?;
    ensure!(answer.status == 200 && answer.body.is_empty(), "{}", answer.summary());
    let answer = get(Method::POST).send().await?;
    answer.error(405, "Method not allowed")?;
    ensure!(answer.header("allow")? == "GET, HEAD", "{}", answer.summary());
    Ok(())
}

async fn pages(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    for (path, media_type, text) in [
        ("/", "text/html; charset=utf-8", "href=\"/dashboard\""),
        ("/docs", "text/html; charset=utf-8", "Quick start"),
        ("/docs/api", "text/html; charset=utf-8", "invalid_field"),
        ("/docs/reference", "text/html; charset=utf-8", "<td data-column=\"value\">"),
        // Text, so that a browser does not run it as a page of this host.
        ("/docs/examples/email.html", "text/plain; charset=utf-8", "<html"),
        ("/docs/how-to/email.md", "text/markdown; charset=utf-8", "# "),
        ("/docs/api.md", "text/markdown; charset=utf-8", "[`format`](options.md#format)"),
        ("/llms.txt", "text/plain; charset=utf-8", "](/docs/options.md)"),
        ("/favicon.svg", "image/svg+xml", "<svg"),
        ("/docs/style.css", "text/css; charset=utf-8", "color-scheme"),
        ("/docs/script.js", "text/javascript; charset=utf-8", "clipboard"),
        ("/docs/reference.md", "text/markdown; charset=utf-8", "## POST /v1/render/template"),
        ("/docs/search?q=pdf+standard&x", "text/html; charset=utf-8", "<ol"),
        ("/healthz", "text/plain", "alive\n"),
        ("/readyz", "text/plain", "ready\n"),
        ("/version", "application/json", concat!("\"version\":\"", env!("CARGO_PKG_VERSION"), "\"")),
    ] {
        let answer = target.post(path, "").method(Method::GET).send().await?;
        ensure!(answer.status == 200 && answer.header("content-type")? == media_type, "{path}");
        ensure!(String::from_utf8_lossy(&answer.body).contains(text), "{path}");
        ensure!(answer.header("content-security-policy")?.contains("default-src 'none'"), "{path}");
    }
    for path in ["/docs/none", "/docs/none.md", "/docs/../api", "/docs/../README.md", "/docs/%2e%2e/api"] {
        let answer = target.post(path, "").method(Method::GET).send().await?;
        ensure!(answer.status == 404, "{path}: {}", answer.summary());
    }
    // A person who follows a wrong link gets a page, a program JSON.
    for path in ["/nowhere", "/docs/none"] {
        let get = || target.post(path, "").method(Method::GET);
        get().send().await?.error(404, "Not found")?;
        let answer = get().header(header::ACCEPT, b"text/html,*/*;q=0.8").send().await?;
        ensure!(
            answer.status == 404 && answer.header("content-type")? == "text/html; charset=utf-8",
            "{path}"
        );
        ensure!(String::from_utf8_lossy(&answer.body).contains("Page not found"), "{path}");
    }
    Ok(())
}

async fn methods(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    for path in ["/", "/docs", "/healthz", "/readyz", "/version"] {
        let answer = target.post(path, "").method(Method::HEAD).send().await?;
        ensure!(answer.status == 200 && answer.body.is_empty(), "{path}: {}", answer.summary());
        let answer = target.post(path, "{}").send().await?;
        ensure!(answer.status == 405 && answer.header(header::ALLOW.as_str())? == "GET, HEAD", "{path}");
    }
    Ok(())
}
