//! Cases, and how they become the trials of a run.
//!
//! Invariant: a case runs once on every database asked for, unless it has nothing to do with one; what a server
//! that runs already cannot show is listed as ignored, with the reason.

use std::sync::Arc;

use anyhow::Result;
use futures::future::BoxFuture;
use libtest_mimic::Trial;
use tokio::runtime::Handle;

use crate::{
    database::DatabaseKind,
    suite::{Stage, Suite},
};

/// What a case cannot do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// Any server and a key to it.
    Server,
    /// Any server with the fixture template.
    Template,
    /// Servers that the suite starts.
    OwnServer,
    /// The same, whatever the database is.
    OwnServerOnce,
    /// Nothing but files.
    Nothing,
}

type Run = Arc<dyn Fn(Stage) -> BoxFuture<'static, Result<()>> + Send + Sync>;

/// One case.
#[derive(Clone)]
pub struct Case {
    name: String,
    needs: Needs,
    run: Run,
}

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $needs:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name<F>(name: impl Into<String>, run: impl Fn(Stage) -> F + Send + Sync + 'static) -> Self
        where
            F: Future<Output = Result<()>> + Send + 'static,
        {
            Self { name: name.into(), needs: Needs::$needs, run: Arc::new(move |stage| Box::pin(run(stage))) }
        }
    )*};
}

impl Case {
    constructors! {
        /// A case for any server and a key to it.
        any_server => Server;
        /// A case for any server whose account has the fixture template.
        any_template => Template;
        /// A case that starts servers, or looks into them.
        own_server => OwnServer;
        /// A case that starts servers, or looks into them, and has nothing to do with the database.
        own_server_once => OwnServerOnce;
        /// A case about files, not servers.
        files => Nothing;
    }
}

/// Makes the trials of a run.
#[must_use]
pub fn trials(suite: &Arc<Suite>, cases: &[Case], runtime: &Handle) -> Vec<Trial> {
    let external = suite.settings().external.as_ref();
    let databases = match external {
        // The database is the server's own affair; one round tells all.
        Some(_) => &[DatabaseKind::File][..],
        None => &suite.settings().databases,
    };
    let mut trials = Vec::new();
    for &database in databases {
        for case in cases {
            let reason = match (case.needs, external) {
                (Needs::Nothing | Needs::OwnServerOnce, _) if database != databases[0] => continue,
                (Needs::OwnServer | Needs::OwnServerOnce, Some(_)) => {
                    Some("ignored: needs a server of its own")
                }
                (Needs::Template, Some(server)) if server.template_id.is_none() => {
                    Some("ignored: needs PLATEN_TEST_TEMPLATE_ID")
                }
                _ => None,
            };
            let (run, stage, runtime) =
                (Arc::clone(&case.run), Stage { suite: Arc::clone(suite), database }, runtime.clone());
            let trial = Trial::test(&case.name, move || {
                let suite = Arc::clone(&stage.suite);
                runtime.block_on(run(stage)).map_err(|error| {
                    let failure = format!("{error:#}");
                    let logged = suite.logged_about(&failure);
                    [failure].into_iter().chain(logged).collect::<Vec<_>>().join("\n").into()
                })
            });
            let kind = match (reason, case.needs, external) {
                (Some(reason), ..) => reason,
                (_, Needs::Nothing, _) => "",
                (.., Some(_)) => "external",
                _ => database.name(),
            };
            trials.push(trial.with_kind(kind).with_ignored_flag(reason.is_some()));
        }
    }
    trials
}
