//! Cases, and the trials of a run that are made of them.
//!
//! Invariant: every case runs on the first chosen deployment, and on the others if the matrix says so. A case that
//! cannot run somewhere is listed as ignored there, with the reason, so every case that passes has run.

use std::{env, sync::Arc};

use anyhow::Result;
use futures::future::LocalBoxFuture;
use libtest_mimic::Trial;
use tokio::runtime::Handle;

use crate::{
    deployment::{Deployment, Platform},
    settings::Settings,
    suite::{Stage, Suite},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// Any server and a key of it.
    Server,
    /// Any server with the fixture template.
    Template,
    /// Any server whose database is reachable.
    Database,
    /// A server that the suite starts.
    OwnServer,
    Files,
}

/// Where cases run besides the first deployment: a prefix of their names, and names of deployments.
pub type Matrix = [(&'static str, &'static [&'static str])];

type Run = Arc<dyn Fn(Stage) -> LocalBoxFuture<'static, Result<()>> + Send + Sync>;

#[derive(Clone)]
pub struct Case {
    name: String,
    needs: Needs,
    /// Where it cannot run, and why.
    exceptions: Vec<(Deployment, String)>,
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
            Self { name, needs, exceptions: Vec::new(), run }
        }
    )*};
}

impl Case {
    constructors! {
        /// A case for any server and a key of it.
        any_server => Server;
        /// A case for any server whose account has the fixture template.
        any_template => Template;
        /// A case for any server in whose database it creates accounts or changes records.
        any_database => Database;
        /// A case that starts a server or inspects one that the suite has started.
        own_server => OwnServer;
        /// A case about files, without a server.
        files => Files;
    }

    /// The case on all deployments but these, for this reason.
    pub fn except(mut self, cannot_run: impl Fn(Deployment) -> bool, reason: &str) -> Self {
        let deployments = Deployment::all().filter(|deployment| cannot_run(*deployment));
        self.exceptions.extend(deployments.map(|deployment| (deployment, reason.to_owned())));
        self
    }

    /// The case on other platforms than Spin, for this reason.
    pub fn not_on_spin(self, reason: &str) -> Self {
        self.except(|deployment| deployment.platform == Platform::Spin, reason)
    }

    /// The case where something is there.
    pub fn needs(self, is_there: bool, what: &str) -> Self {
        self.except(|_| !is_there, &format!("needs {what}"))
    }

    /// The case on machines with a program.
    pub fn needs_program(self, name: &str) -> Self {
        let path = env::var_os("PATH").unwrap_or_default();
        let is_there = env::split_paths(&path).any(|directory| directory.join(name).is_file());
        self.needs(is_there, name)
    }

    fn is_in(&self, matrix: &Matrix, deployment: Deployment) -> bool {
        let is_in = |(prefix, names): &(&str, &[&str])| {
            self.name.starts_with(prefix) && names.contains(&deployment.name())
        };
        matrix.iter().any(is_in)
    }

    fn ignored(&self, deployment: Deployment, settings: &Settings) -> Option<String> {
        let missing = settings.external.as_ref().and_then(|server| match self.needs {
            Needs::OwnServer => Some("a server that the suite starts"),
            Needs::Database if server.database.is_none() => Some("PLATEN_TEST_DB"),
            Needs::Template if server.database.is_none() && server.template_id.is_none() => {
                Some("PLATEN_TEST_DB or PLATEN_TEST_TEMPLATE_ID")
            }
            _ => None,
        });
        let exception = || self.exceptions.iter().find(|(at, _)| *at == deployment);
        missing.map(|what| format!("needs {what}")).or_else(|| Some(exception()?.1.clone()))
    }

    fn trial(&self, suite: &Arc<Suite>, deployment: Deployment, runtime: &Handle) -> Trial {
        let server = suite.settings().external.as_ref().map_or(deployment.name(), |_| "external");
        let ignored = self.ignored(deployment, suite.settings());
        let kind = match &ignored {
            Some(reason) => format!("{server}: {reason}"),
            None if self.needs == Needs::Files => String::new(),
            None => server.to_owned(),
        };
        let (run, stage, runtime) =
            (Arc::clone(&self.run), Stage { suite: Arc::clone(suite), deployment }, runtime.clone());
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

pub fn trials(suite: &Arc<Suite>, cases: &[Case], matrix: &Matrix, runtime: &Handle) -> Vec<Trial> {
    let settings = suite.settings();
    let mut deployments = settings.deployments.clone();
    if settings.external.is_some() {
        // An external server is one deployment, whichever it is.
        deployments = Deployment::all().take(1).collect();
    }
    let on = |deployment: Deployment| {
        let is_first = deployments.first() == Some(&deployment);
        let cases = cases.iter().filter(move |case| is_first || case.is_in(matrix, deployment));
        cases.map(move |case| case.trial(suite, deployment, runtime))
    };
    deployments.iter().flat_map(|deployment| on(*deployment)).collect()
}
