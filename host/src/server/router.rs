//! Finds the component for a path, as Spin does: an exact route before a wildcard, a longer wildcard before
//! a shorter one; a slash at the end is ignored.

use std::collections::BTreeMap;

use crate::{manifest::HttpTrigger, runtime::Handler};

pub(super) struct Router<H = Handler>(Vec<Route<H>>);

pub(super) struct Route<H = Handler> {
    /// As in the manifest; static, because it is a label of metrics.
    pub(super) pattern: &'static str,
    /// Without the wildcard and without a slash at the end.
    pub(super) prefix: String,
    wildcard: bool,
    pub(super) handler: H,
}

impl<H: Clone> Router<H> {
    pub(super) fn new(routes: &[HttpTrigger], handlers: &BTreeMap<String, H>) -> Self {
        let mut routes: Vec<Route<H>> = routes
            .iter()
            .filter_map(|trigger| {
                let wildcard = trigger.route.strip_suffix("/...");
                Some(Route {
                    // Routes exist as long as the process.
                    pattern: trigger.route.clone().leak(),
                    prefix: trimmed(wildcard.unwrap_or(&trigger.route)).to_owned(),
                    wildcard: wildcard.is_some(),
                    handler: handlers.get(&trigger.component)?.clone(),
                })
            })
            .collect();
        // So that the first match is the right one.
        routes.sort_by_key(|route| (route.wildcard, std::cmp::Reverse(route.prefix.len())));
        Self(routes)
    }

    pub(super) fn find(&self, path: &str) -> Option<&Route<H>> {
        let path = trimmed(path);
        self.0.iter().find(|route| {
            path.strip_prefix(&*route.prefix)
                .is_some_and(|rest| rest.is_empty() || (route.wildcard && rest.starts_with('/')))
        })
    }
}

impl<H> Route<H> {
    /// The part of a path that the wildcard matches.
    pub(super) fn rest_of<'p>(&self, path: &'p str) -> &'p str {
        if self.wildcard { path.get(self.prefix.len()..).unwrap_or_default() } else { "" }
    }
}

fn trimmed(path: &str) -> &str {
    path.strip_suffix('/').unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_route_precedes_a_wildcard_and_a_long_one_a_short_one() {
        let triggers: Vec<HttpTrigger> =
            ["/...", "/v1/...", "/v1/render", "/dashboard/...", "/dashboard/login/"]
                .iter()
                .map(|route| toml::from_str(&format!("route = {route:?}\ncomponent = {route:?}")).unwrap())
                .collect();
        let handlers = triggers.iter().map(|t| (t.component.clone(), t.route.clone())).collect();
        let router = Router::new(&triggers, &handlers);
        for (path, route, rest) in [
            ("/", "/...", "/"),
            ("/x", "/...", "/x"),
            ("/v1", "/v1/...", ""),
            ("/v1/", "/v1/...", "/"),
            ("/v1x", "/...", "/v1x"),
            ("/v1/render", "/v1/render", ""),
            ("/v1/render/", "/v1/render", ""),
            ("/v1/render/template", "/v1/...", "/render/template"),
            ("/dashboard", "/dashboard/...", ""),
            ("/dashboard/login", "/dashboard/login/", ""),
            ("/dashboard/a/b/", "/dashboard/...", "/a/b/"),
        ] {
            let found = router.find(path).unwrap();
            assert_eq!((found.pattern, found.rest_of(path)), (route, rest), "{path}");
            assert_eq!(found.handler, route, "{path}");
        }
        assert!(Router::new(&[], &handlers).find("/").is_none());
    }
}
