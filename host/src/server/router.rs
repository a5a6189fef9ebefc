//! Finds the component for a path: the longest route before a shorter one.

use std::collections::BTreeMap;

use crate::{manifest::HttpTrigger, runtime::Handler};

pub(super) struct Router<H = Handler>(Vec<Route<H>>);

pub(super) struct Route<H = Handler> {
    /// As in the manifest; static, because it is a label of metrics.
    pub(super) pattern: &'static str,
    /// Without the wildcard and the slash before it.
    prefix: String,
    pub(super) handler: H,
}

impl<H: Clone> Router<H> {
    pub(super) fn new(routes: &[HttpTrigger], handlers: &BTreeMap<String, H>) -> Self {
        let mut routes: Vec<Route<H>> = routes
            .iter()
            .filter_map(|trigger| {
                Some(Route {
                    // Routes exist as long as the process.
                    pattern: trigger.route.clone().leak(),
                    prefix: trigger.prefix()?.to_owned(),
                    handler: handlers.get(&trigger.component)?.clone(),
                })
            })
            .collect();
        // So that the first match is the right one.
        routes.sort_by_key(|route| std::cmp::Reverse(route.prefix.len()));
        Self(routes)
    }

    pub(super) fn find(&self, path: &str) -> Option<&Route<H>> {
        self.0.iter().find(|route| {
            path.strip_prefix(&*route.prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_route_precedes_a_short_one() {
        let triggers = ["/...", "/v1/...", "/v1/render/..."]
            .map(|route| HttpTrigger { route: route.to_owned(), component: route.to_owned() });
        let handlers = triggers.iter().map(|t| (t.component.clone(), t.route.clone())).collect();
        let router = Router::new(&triggers, &handlers);
        for (path, route) in [
            ("/", "/..."),
            ("/x", "/..."),
            ("/v1", "/v1/..."),
            ("/v1/", "/v1/..."),
            ("/v1x", "/..."),
            ("/v1/render", "/v1/render/..."),
            ("/v1/render/template", "/v1/render/..."),
            ("/v1/rendering", "/v1/..."),
        ] {
            let found = router.find(path).unwrap();
            assert_eq!((found.pattern, found.handler.as_str()), (route, route), "{path}");
        }
        assert!(Router::new(&[], &handlers).find("/").is_none());
    }
}
