//! Cases, and the trials of a run that are made of them.
//!
//! Invariant: a case runs on each chosen database, unless its result does not depend on the database. Cases that an
//! external server cannot run are listed as ignored, with the reason.

use std::sync::Arc;

use anyhow::Result;
use futures::future::LocalBoxFuture;
use libtest_mimic::Trial;
use tokio::runtime::Handle;

use crate::{
    database::DatabaseKind,
    settings::External,
    suite::{Stage, Suite},
};

/// What a case needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// Any server and a key of it.
    Server,
    /// Any server with the fixture template.
    Template,
    /// A server that the suite starts.
    OwnServer,
    /// Files only.
    Files,
}

type Run = Arc<dyn Fn(Stage) -> LocalBoxFuture<'static, Result<()>> + Send + Sync>;

/// One case.
#[derive(Clone)]
pub struct Case {
    name: String,
    needs: Needs,
    runs_once: bool,
    run: Run,
}

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $needs:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name<F>(name: impl Into<String>, run: impl Fn(Stage) -> F + Send + Sync + 'static) -> Self
        where
            F: Future<Output = Result<()>> + 'static,
        {
            let (name, needs) = (name.into(), Needs::$needs);
            let run: Run = Arc::new(move |stage| Box::pin(run(stage)));
            Self { name, needs, runs_once: needs == Needs::Files, run }
        }
    )*};
}

impl Case {
    constructors! {
        /// A case for any server and a key of it.
        any_server => Server;
        /// A case for any server whose account has the fixture template.
        any_template => Template;
        /// A case that starts a server or inspects one that the suite has started.
        own_server => OwnServer;
        /// A case about files, without a server.
        files => Files;
    }

    /// The case on the first database only: its result does not depend on the database.
    #[must_use]
    pub fn once(self) -> Self {
        Self { runs_once: true, ..self }
    }

    /// Why the case cannot run.
    fn ignored(&self, external: Option<&External>) -> Option<&'static str> {
        match (self.needs, external) {
            (Needs::OwnServer, Some(_)) => Some("ignored: needs a server that the suite starts"),
            (Needs::Template, Some(server)) if server.template_id.is_none() => {
                Some("ignored: needs PLATEN_TEST_TEMPLATE_ID")
            }
            _ => None,
        }
    }

    fn trial(&self, suite: &Arc<Suite>, database: DatabaseKind, runtime: &Handle) -> Trial {
        let external = suite.settings().external.as_ref();
        let ignored = self.ignored(external);
        let kind = ignored.unwrap_or(match (self.needs, external) {
            (Needs::Files, _) => "",
            (_, Some(_)) => "external",
            (_, None) => database.name(),
        });
        let (run, stage, runtime) =
            (Arc::clone(&self.run), Stage { suite: Arc::clone(suite), database }, runtime.clone());
        let trial = Trial::test(&self.name, move || {
            let suite = Arc::clone(&stage.suite);
            runtime.block_on(run(stage)).map_err(|error| {
                let failure = format!("{error:#}");
                let log = suite.log_lines_of(&failure);
                [failure].into_iter().chain(log).collect::<Vec<_>>().join("\n").into()
            })
        });
        trial.with_kind(kind).with_ignored_flag(ignored.is_some())
    }
}

/// Makes the trials of a run.
#[must_use]
pub fn trials(suite: &Arc<Suite>, cases: &[Case], runtime: &Handle) -> Vec<Trial> {
    let settings = suite.settings();
    let databases = match settings.external {
        // An external server has one database, whichever kind it is.
        Some(_) => &[DatabaseKind::File][..],
        None => &settings.databases,
    };
    let on = |database: DatabaseKind| {
        let cases = cases.iter().filter(move |case| !case.runs_once || database == databases[0]);
        cases.map(move |case| case.trial(suite, database, runtime))
    };
    databases.iter().flat_map(|database| on(*database)).collect()
}
