//! Tests of the stand-in itself.

use serde_json::{Value, json};

use super::*;
use crate::{latch::LatchWaiter, long_file::pattern_byte};

fn job(account: &str) -> Value {
    json!({
        "account": account,
        "source": { "html": "x" },
        "options": { "output": { "pdf": { "sheet": { "width": 794, "height": 1123 } } } },
    })
}

async fn post(farm: &StandInFarm, token: &str, job: &Value) -> reqwest::Response {
    let request = reqwest::Client::new().post(format!("{}{}", farm.url(), wire::JOBS_PATH));
    request.bearer_auth(token).header(wire::REQUEST_ID, "id-1").json(job).send().await.unwrap()
}

#[tokio::test]
async fn valid_jobs_with_the_token_are_recorded() {
    let farm = StandInFarm::start("token").await.unwrap();
    assert_eq!(post(&farm, "other", &job("a")).await.status(), 401);
    assert_eq!(post(&farm, "token", &json!({})).await.status(), 503);
    assert_eq!((farm.received_in_all(), farm.rejected()), (0, 2));
    let answer = post(&farm, "token", &job("a")).await;
    assert_eq!(answer.headers()["content-type"], "application/pdf");
    assert_eq!(answer.bytes().await.unwrap(), FILE);
    assert_eq!(farm.received_from("a").len(), 1);
    assert_eq!(farm.received_as("id-1").unwrap().job.account.as_str(), "a");
    farm.received_as("id-2").unwrap_err();
}

#[tokio::test]
async fn each_account_has_its_behaviour() {
    let farm = StandInFarm::start("token").await.unwrap();
    farm.behave("full", Behaviour::Refuse(Refusal::QueueFull { retry_after: 3 }));
    farm.behave("long", Behaviour::LongFile(200_000));
    let broken = Behaviour::BreakOff { promised: Some(1_000), sent: 10, until: LatchWaiter::ready() };
    farm.behave("broken", broken);
    let full = post(&farm, "token", &job("full")).await;
    assert_eq!(full.status(), 503);
    assert_eq!(full.json::<Value>().await.unwrap(), json!({"code": "queue_full", "retry_after": 3}));
    let long = post(&farm, "token", &job("long")).await.bytes().await.unwrap();
    assert_eq!(long.len(), 200_000);
    assert!(long.iter().zip(0..).all(|(byte, offset)| *byte == pattern_byte(offset)));
    assert!(post(&farm, "token", &job("broken")).await.bytes().await.is_err());
    assert_eq!(post(&farm, "token", &job("other")).await.status(), 200);
}
