//! What the `ratelimit-policy` and `ratelimit` fields of an answer say.

use anyhow::{Context as _, Result, ensure};

use crate::client::Answer;

/// The numbers of the `ratelimit-policy` and `ratelimit` fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Attempts a month.
    pub quota: u64,
    /// Seconds of this month.
    pub window: u64,
    pub left: u64,
    /// Seconds to the next month.
    pub reset: u64,
}

/// One more limit in the `ratelimit` fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    pub allowed: u64,
    pub left: u64,
    /// Seconds until they are allowed again; `None` if a request that ends allows another one.
    pub reset: Option<u64>,
}

impl Answer {
    /// The values of the `ratelimit` fields for the month, which is their first item.
    pub fn rate_limit(&self) -> Result<RateLimit> {
        let (policies, states) = self.rate_limit_items()?;
        let (quota, window) = two_parameters(policies[0], "q", "w")?;
        let (left, reset) = two_parameters(states[0], "r", "t")?;
        ensure!(left <= quota && reset <= window && reset > 0, "{left} of {quota}, {reset} of {window} s");
        Ok(RateLimit { quota, window, left, reset })
    }

    /// The limit of requests in a minute, if the `ratelimit` fields have one.
    pub fn minute(&self) -> Result<Option<Limit>> {
        let Some((policy, state)) = self.limit("minute", ";w=60")? else { return Ok(None) };
        let (left, reset) = state.split_once(";t=").context("no t")?;
        let (allowed, left, reset) = (policy.parse()?, left.parse()?, reset.parse()?);
        ensure!(left <= allowed && (1..=60).contains(&reset), "{left} of {allowed}, {reset} s");
        Ok(Some(Limit { allowed, left, reset: Some(reset) }))
    }

    /// The limit of requests at once, if the `ratelimit` fields have one.
    pub fn concurrency(&self) -> Result<Option<Limit>> {
        let Some((policy, state)) = self.limit("concurrency", ";qu=\"concurrent-requests\"")? else {
            return Ok(None);
        };
        let (allowed, left) = (policy.parse()?, state.parse()?);
        ensure!(left <= allowed, "{left} of {allowed}");
        Ok(Some(Limit { allowed, left, reset: None }))
    }

    /// What follows `q=` and `r=` in the items of a limit, without the rest of its policy.
    fn limit(&self, name: &str, rest: &str) -> Result<Option<(&str, &str)>> {
        let (policies, states) = self.rate_limit_items()?;
        let of = |items: &[&'_ str]| items.iter().position(|item| item.starts_with(&format!("\"{name}\";")));
        ensure!(of(&policies) == of(&states), "{policies:?} and {states:?}");
        let Some(index) = of(&policies) else { return Ok(None) };
        let policy = policies[index].strip_prefix(&format!("\"{name}\";q=")).context("no q")?;
        let state = states[index].strip_prefix(&format!("\"{name}\";r=")).context("no r")?;
        Ok(Some((policy.strip_suffix(rest).with_context(|| format!("no {rest} in {policy}"))?, state)))
    }

    /// The items of `ratelimit-policy` and `ratelimit`.
    fn rate_limit_items(&self) -> Result<(Vec<&str>, Vec<&str>)> {
        let items = |name| Ok::<_, anyhow::Error>(self.header(name)?.split(", ").collect::<Vec<_>>());
        let (policies, states) = (items("ratelimit-policy")?, items("ratelimit")?);
        ensure!(policies.len() == states.len(), "{policies:?} and {states:?}");
        Ok((policies, states))
    }
}

/// Reads `"monthly";a=1;b=2`.
fn two_parameters(text: &str, first: &str, second: &str) -> Result<(u64, u64)> {
    let read = || {
        let (one, other) = text.strip_prefix("\"monthly\";")?.split_once(';')?;
        let value = |part: &str, name: &str| part.strip_prefix(name)?.strip_prefix('=')?.parse().ok();
        Some((value(one, first)?, value(other, second)?))
    };
    read().with_context(|| format!("{text:?} is not \"monthly\";{first}=…;{second}=…"))
}
