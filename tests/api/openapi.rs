//! The OpenAPI document compared with the limits and names of the contract, the golden cases, and answers of a running
//! server.

use anyhow::anyhow;
use boon::{Compiler, SchemaIndex, Schemas};
use platen_harness::{api_reference::with_commas, golden, settings::tests_dir};
use platen_shared::{
    endpoint::Endpoint,
    format::{OutputFormat, PaperSize, WaitUntil},
    limits,
    request::FieldName,
};

use crate::account_limits::limited;
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::files("openapi/limits_and_names_are_those_of_the_contract", limits_and_names),
        Case::files("openapi/defaults_and_bounds_are_allowed_values", defaults_and_bounds),
        Case::files("openapi/every_failure_is_an_error_object", every_failure),
        Case::files("openapi/agrees_with_the_golden_cases", golden_cases),
        Case::any_server("openapi/describes_real_answers", real_answers),
        Case::any_database("openapi/describes_answers_with_limits", answers_with_limits),
    ]
}

const LOCATION: &str = "http://platen.test/openapi.json";

fn document() -> Result<Value> {
    let text = std::fs::read_to_string(tests_dir().join("../shared/openapi.json"))?;
    Ok(serde_json::from_str(&text)?)
}

/// The parts of the document as JSON Schemas.
struct Validator {
    schemas: Schemas,
    compiler: Compiler,
}

impl Validator {
    fn new() -> Result<Self> {
        let mut compiler = Compiler::new();
        compiler.add_resource(LOCATION, document()?).map_err(|error| anyhow!("{error}"))?;
        Ok(Self { schemas: Schemas::new(), compiler })
    }

    fn schema(&mut self, pointer: &str) -> Result<SchemaIndex> {
        let location = format!("{LOCATION}#{pointer}");
        self.compiler.compile(&location, &mut self.schemas).map_err(|error| anyhow!("{pointer}: {error:#}"))
    }

    fn accepts(&mut self, pointer: &str, value: &Value) -> Result<bool> {
        let schema = self.schema(pointer)?;
        Ok(self.schemas.validate(value, schema).is_ok())
    }
}

fn schema_of(endpoint: &str) -> Result<String> {
    let document = document()?;
    let schema =
        &document["paths"][endpoint]["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"];
    let reference = schema.as_str().with_context(|| format!("{endpoint} has no schema"))?;
    Ok(reference.trim_start_matches('#').to_owned())
}

async fn limits_and_names(_: Stage) -> Result<()> {
    let document = document()?;
    let (side, factor) = (limits::VIEWPORT_SIDE_RANGE, limits::DEVICE_SCALE_FACTOR_RANGE);
    let (scale, wait) = (limits::PDF_SCALE_RANGE, limits::WAIT_FOR_TIMEOUT_MS_RANGE);
    let table = [
        ("html/maxLength", json!(limits::MAX_HTML_BYTES)),
        ("variables/maxProperties", json!(limits::MAX_VARIABLES)),
        ("fileName/maxLength", json!(limits::MAX_FILE_NAME_CHARS)),
        ("width/minimum", json!(side.start())),
        ("width/maximum", json!(side.end())),
        ("height/minimum", json!(side.start())),
        ("height/maximum", json!(side.end())),
        ("deviceScaleFactor/minimum", json!(factor.start())),
        ("deviceScaleFactor/maximum", json!(factor.end())),
        ("scale/minimum", json!(scale.start())),
        ("scale/maximum", json!(scale.end())),
        ("waitForTimeout/minimum", json!(wait.start())),
        ("waitForTimeout/maximum", json!(wait.end())),
        ("format/enum", json!(OutputFormat::NAMES)),
        ("waitUntil/enum", json!(WaitUntil::NAMES)),
        ("pdfFormat/enum", json!(PaperSize::NAMES)),
        ("headerHtml/maxLength", json!(65_536)),
        ("css/maxLength", json!(262_144)),
    ];
    for (pointer, expected) in table {
        let schemas = ["RenderRequest", "TemplateRenderRequest"];
        let found = schemas
            .iter()
            .find_map(|name| document.pointer(&format!("/components/schemas/{name}/properties/{pointer}")));
        let same = match (found, expected.as_f64()) {
            // 4 and 4.0 are the same bound.
            (Some(found), Some(number)) => {
                found.as_f64().is_some_and(|found| (found - number).abs() < f64::EPSILON)
            }
            (found, _) => found == Some(&expected),
        };
        ensure!(same, "{pointer} is {found:?}, the contract says {expected}");
    }
    let defaults = [
        (FieldName::Height, json!(limits::DEFAULT_HEIGHT)),
        (FieldName::Quality, json!(80)),
        (FieldName::Timezone, json!("UTC")),
        (FieldName::Locale, json!("en-US")),
        (FieldName::JavaScript, json!(true)),
        (FieldName::Animations, json!("finish")),
        (FieldName::Scroll, json!(true)),
    ];
    for (name, expected) in defaults {
        let default = name.spec().default.map(serde_json::from_str::<Value>).transpose()?;
        ensure!(default.as_ref() == Some(&expected), "the default of {name} is {default:?}, not {expected}");
    }
    // The numbers in descriptions.
    let prose = document.to_string();
    ensure!(prose.contains(&format!("an image has {}, ", limits::DEFAULT_WIDTH)), "the width of an image");
    for number in [limits::MAX_HTML_BYTES as u64, limits::MAX_BODY_BYTES as u64, limits::MAX_IMAGE_PIXELS] {
        ensure!(prose.contains(&with_commas(number)), "{} is not in the document", with_commas(number));
    }
    ensure!(prose.contains(&format!("{} seconds", limits::RENDER_TIMEOUT_MS / 1_000)), "the deadline");
    ensure!(
        prose.contains(&format!("1 to {} letters", wire::MAX_REQUEST_ID_CHARS)),
        "the length of a request id"
    );
    ensure!(prose.contains(&format!("1 to {} of", limits::MAX_FILE_STEM_CHARS)), "the length of a file name");
    Ok(())
}

async fn defaults_and_bounds(_: Stage) -> Result<()> {
    let mut validator = Validator::new()?;
    let document = document()?;
    for (endpoint, of) in [(RENDER, Endpoint::Render), (TEMPLATE, Endpoint::Template)] {
        let pointer = format!("{}/properties", schema_of(endpoint)?);
        for (name, schema) in document.pointer(&pointer).and_then(Value::as_object).context("no fields")? {
            let pointer = format!("{pointer}/{name}");
            ensure!(
                schema.get("default").is_none(),
                "{name} has a default, which generated clients would send"
            );
            let field =
                FieldName::of_endpoint(of).find(|field| field.as_str() == name).context("no such field")?;
            if let Some(default) = field.spec().default {
                let value = serde_json::from_str(default)?;
                ensure!(
                    validator.accepts(&pointer, &value)?,
                    "{name} does not allow its own default {value}"
                );
            }
            for keyword in ["minimum", "maximum"] {
                if let Some(value) = schema.get(keyword) {
                    ensure!(
                        validator.accepts(&pointer, value)?,
                        "{name} does not allow its own {keyword} {value}"
                    );
                }
            }
            ensure!(!validator.accepts(&pointer, &Value::Null)?, "{name} allows null");
        }
    }
    for endpoint in [RENDER, TEMPLATE] {
        let examples =
            &document["paths"][endpoint]["post"]["requestBody"]["content"]["application/json"]["examples"];
        for (name, example) in examples.as_object().context("no examples")? {
            ensure!(
                validator.accepts(&schema_of(endpoint)?, &example["value"])?,
                "the example {name} is not valid"
            );
        }
    }
    Ok(())
}

/// Exactly the statuses of the contract, and the form of each failure.
async fn every_failure(_: Stage) -> Result<()> {
    let mut validator = Validator::new()?;
    let document = document()?;
    let common = ["200", "400", "401", "408", "413", "415", "422", "429", "500", "501", "502", "503", "504"];
    // Of requests whose key is not looked up, or cannot be.
    let without_quota = ["401", "408", "500", "501"];
    for (endpoint, also) in [(RENDER, None), (TEMPLATE, Some("404"))] {
        let responses =
            document["paths"][endpoint]["post"]["responses"].as_object().context("no responses")?;
        let expected = common.into_iter().chain(also).collect::<std::collections::BTreeSet<_>>();
        let found = responses.keys().map(String::as_str).collect::<std::collections::BTreeSet<_>>();
        ensure!(found == expected, "{endpoint} has {found:?}");
        for (status, response) in responses {
            let reference = response["$ref"].as_str().context("responses are shared")?;
            let response = document.pointer(reference.trim_start_matches('#')).context("no such response")?;
            let has = |header: &str| response["headers"].get(header).is_some();
            ensure!(has("x-request-id") && has("cache-control"), "{status}: {response}");
            ensure!(has("ratelimit") != without_quota.contains(&status.as_str()), "{status}: {response}");
            ensure!(has("retry-after") == matches!(status.as_str(), "429" | "503"), "{status}: {response}");
            ensure!(has("content-disposition") == (status == "200"), "{status}: {response}");
            ensure!(has("www-authenticate") == (status == "401"), "{status}: {response}");
            ensure!(has("accept-encoding") == (status == "415"), "{status}: {response}");
            let Some(json) = response["content"].get("application/json") else { continue };
            for (name, example) in json["examples"].as_object().context("no examples")? {
                let valid = validator.accepts("/components/schemas/Error", &example["value"])?;
                ensure!(valid, "{status}: the example {name}");
            }
        }
    }
    Ok(())
}

async fn golden_cases(_: Stage) -> Result<()> {
    let mut validator = Validator::new()?;
    let mut wrong = Vec::new();
    for (cases, is_valid) in [(golden::invalid()?, false), (golden::valid()?, true)] {
        for case in cases {
            // Bodies that are not JSON have no schema.
            let Ok(body) = serde_json::from_slice::<Value>(&case.bytes("tpl_x")) else { continue };
            let accepted = validator.accepts(&schema_of(&case.endpoint)?, &body)?;
            if (accepted == is_valid) != case.schema_agrees {
                let verb = if accepted { "accepts" } else { "refuses" };
                wrong.push(format!("the schema {verb} {}: {}", case.name, case.schema_agrees));
            }
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

async fn real_answers(stage: Stage) -> Result<()> {
    let target = stage.target().await?;
    let small = json!({ "html": "x", "width": 8, "height": 8 });
    let answers = [
        (RENDER, target.render(&small).send().await?),
        (RENDER, target.post(RENDER, "{}").send().await?),
        (RENDER, target.render(&small).key("junk").send().await?),
        (RENDER, target.render(&small).without(&http::header::CONTENT_TYPE).send().await?),
        (RENDER, target.render(&small).header(http::header::CONTENT_ENCODING, b"gzip").send().await?),
        (RENDER, target.render(&json!({ "url": format!("http://{}.test/", "a".repeat(64)) })).send().await?),
        (TEMPLATE, target.render_template(&json!({ "templateId": "tpl_none" })).send().await?),
    ];
    let mut validator = Validator::new()?;
    for (endpoint, answer) in answers {
        described(&mut validator, endpoint, &answer).with_context(|| answer.summary())?;
    }
    Ok(())
}

async fn answers_with_limits(stage: Stage) -> Result<()> {
    let service = stage.service().await?;
    let mut validator = Validator::new()?;
    for limits in [
        &["--requests-per-minute", "1"][..],
        &["--concurrency", "1"],
        &["--requests-per-minute", "1", "--concurrency", "1"],
    ] {
        let (_, target) = limited(&service, Quota::Of(9), limits).await?;
        for _ in 0..2 {
            let answer = target.minimal().send().await?;
            described(&mut validator, RENDER, &answer).with_context(|| answer.summary())?;
        }
    }
    Ok(())
}

/// Status, media type, body and every header of an answer are in the document.
fn described(validator: &mut Validator, endpoint: &str, answer: &Answer) -> Result<()> {
    let document = document()?;
    let response = &document["paths"][endpoint]["post"]["responses"][answer.status.to_string()]["$ref"];
    let pointer = response.as_str().context("the status is not described")?.trim_start_matches('#');
    let response = document.pointer(pointer).context("no such response")?;
    let media_type = answer.header("content-type")?;
    ensure!(response["content"].get(media_type).is_some(), "{media_type} is not described");
    if media_type == "application/json" {
        let body = serde_json::from_slice(&answer.body)?;
        ensure!(
            validator.accepts("/components/schemas/Error", &body)?,
            "the body differs from its description"
        );
    }
    for (name, header) in response["headers"].as_object().context("no headers")? {
        let pointer = header["$ref"].as_str().context("headers are shared")?.trim_start_matches('#');
        let described = document.pointer(pointer).context("no such header")?;
        let Some(value) = answer.headers.get(name) else {
            ensure!(described["required"] != json!(true), "there is no {name}");
            continue;
        };
        let text = value.to_str()?;
        let is_integer = described["schema"]["type"] == json!("integer");
        let value = if is_integer { json!(text.parse::<u64>()?) } else { json!(text) };
        ensure!(
            validator.accepts(&format!("{pointer}/schema"), &value)?,
            "{name}: {text} differs from its description"
        );
    }
    Ok(())
}
