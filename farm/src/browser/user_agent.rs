//! The user agent of a page: in its requests, its scripts and its client hints.

use chromiumoxide_cdp::cdp::browser_protocol::emulation::{
    SetUserAgentOverrideParams, UserAgentBrandVersion, UserAgentMetadata,
};
use platen_shared::{job::UserAgent, locale::Locale};

/// Part of a user agent's text, the operating system's name in client hints, and `navigator.platform`. The first that the
/// text contains counts.
const PLATFORMS: &[(&str, &str, &str)] = &[
    ("Windows", "Windows", "Win32"),
    ("Android", "Android", "Linux armv81"),
    ("iPhone", "iOS", "iPhone"),
    ("iPad", "iOS", "iPad"),
    ("Macintosh", "macOS", "MacIntel"),
    ("CrOS", "Chrome OS", "Linux x86_64"),
    ("Linux", "Linux", "Linux x86_64"),
];
/// Part of a user agent's text before its version, and its brand in client hints. The first that the text contains counts;
/// browsers without one of these have no client hints.
const BRANDS: &[(&str, &str)] = &[
    ("Edg/", "Microsoft Edge"),
    ("OPR/", "Opera"),
    ("HeadlessChrome/", "HeadlessChrome"),
    ("Chrome/", "Google Chrome"),
];
/// A brand that is added so that servers do not depend on the list
/// (<https://wicg.github.io/ua-client-hints/#grease>).
const OTHER_BRAND: (&str, &str) = ("Not:A-Brand", "8.0.0.0");

/// The user agent of Chrome of a version, with the reductions of Chrome: only the major version, and no device.
pub(crate) fn of_chrome(version: &str, mobile: bool) -> String {
    let (system, kind) = if mobile { ("Linux; Android 10; K", " Mobile") } else { ("X11; Linux x86_64", "") };
    let major = major(version);
    format!(
        "Mozilla/5.0 ({system}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{major}.0.0.0{kind} Safari/537.36"
    )
}

/// The command that sets the user agent and the language of a page or a worker. Without a user agent it is that of Chrome
/// of the browser's version.
pub(crate) fn command(
    agent: Option<&UserAgent>,
    mobile: bool,
    locale: Option<&Locale>,
    browser_version: &str,
) -> SetUserAgentOverrideParams {
    let text = agent.map_or_else(|| of_chrome(browser_version, mobile), |agent| agent.as_str().to_owned());
    let (system, platform) = PLATFORMS
        .iter()
        .find(|(part, ..)| text.contains(part))
        .map_or(("", ""), |(_, system, platform)| (*system, *platform));
    let mobile = mobile || text.contains(" Mobile");
    // The text of Chrome has only the major version.
    let version = |part| agent.map_or(Some(browser_version), |_| version_after(&text, part));
    let brand = BRANDS.iter().find(|(part, _)| text.contains(part));
    let brand =
        brand.and_then(|(part, brand)| Some([("Chromium", version("Chrome/")?), (*brand, version(part)?)]));
    let user_agent_metadata = brand.map(|[chromium, brand]| {
        let all = [OTHER_BRAND, chromium, brand];
        let list = |of: fn(&str) -> &str| {
            Some(all.map(|(name, version)| UserAgentBrandVersion::new(name, of(version))).to_vec())
        };
        let (architecture, bitness, form) =
            if mobile { ("", "", "Mobile") } else { ("x86", "64", "Desktop") };
        UserAgentMetadata {
            brands: list(major),
            full_version_list: list(|version| version),
            platform: system.to_owned(),
            platform_version: String::new(),
            architecture: architecture.to_owned(),
            model: String::new(),
            mobile,
            bitness: Some(bitness.to_owned()),
            wow64: Some(false),
            form_factors: Some(vec![form.to_owned()]),
        }
    });
    SetUserAgentOverrideParams {
        accept_language: locale.map(|locale| locale.as_str().to_owned()),
        platform: Some(platform.to_owned()),
        user_agent_metadata,
        ..SetUserAgentOverrideParams::new(text)
    }
}

/// The version that follows a part of a user agent's text.
fn version_after<'a>(text: &'a str, part: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(part)?;
    rest.split(|char: char| char != '.' && !char.is_ascii_digit()).next()
}

fn major(version: &str) -> &str {
    version.split('.').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSION: &str = "156.0.8078.108";

    fn of(agent: Option<&str>, mobile: bool) -> SetUserAgentOverrideParams {
        let agent = agent.map(|text| UserAgent::try_from(text.to_owned()).unwrap());
        command(agent.as_ref(), mobile, None, VERSION)
    }

    #[test]
    fn client_hints_agree_with_the_user_agent() {
        let windows = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 \
             Safari/537.36 Edg/121.0.5.1";
        let android = "Mozilla/5.0 (Linux; Android 10; K) Chrome/130.1.2.3 Mobile Safari/537.36";
        for (agent, mobile, platform, system, brand, is_mobile) in [
            (None, false, "Linux x86_64", "Linux", ("Google Chrome", "156", VERSION), false),
            (None, true, "Linux armv81", "Android", ("Google Chrome", "156", VERSION), true),
            (Some(windows), false, "Win32", "Windows", ("Microsoft Edge", "121", "121.0.5.1"), false),
            (Some(windows), true, "Win32", "Windows", ("Microsoft Edge", "121", "121.0.5.1"), true),
            (Some(android), false, "Linux armv81", "Android", ("Google Chrome", "130", "130.1.2.3"), true),
        ] {
            let command = of(agent, mobile);
            let hints = command.user_agent_metadata.unwrap();
            assert_eq!((command.platform.unwrap().as_str(), hints.platform.as_str()), (platform, system));
            assert_eq!(hints.mobile, is_mobile, "{}", command.user_agent);
            let last = |list: Option<Vec<UserAgentBrandVersion>>| list.unwrap().pop().unwrap();
            let (short, full) = (last(hints.brands), last(hints.full_version_list));
            assert_eq!((short.brand.as_str(), short.version.as_str(), full.version.as_str()), brand);
        }
        for other in
            ["Mozilla/5.0 (Macintosh; rv:130.0) Gecko/20100101 Firefox/130.0", "curl/8", "Chrome", "x"]
        {
            assert!(of(Some(other), false).user_agent_metadata.is_none(), "{other}");
        }
    }

    #[test]
    fn the_default_is_that_of_chrome() {
        let text = of(None, false).user_agent;
        assert!(text.contains(" Chrome/156.0.0.0 Safari/") && !text.contains("Headless"), "{text}");
        assert!(
            of_chrome(VERSION, true).contains("Android") && of_chrome(VERSION, true).contains(" Mobile ")
        );
    }
}
