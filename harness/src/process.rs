//! Programs that tests and benchmarks start: their log, their signals and their exit.
//!
//! Invariant: a dropped [`Process`] has been stopped and reaped; if the process that started it is killed, the kernel
//! signals the program.

use std::{
    io::{BufRead as _, BufReader, Read},
    os::unix::fs::{PermissionsExt as _, chown},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use nix::{
    sys::signal::{Signal, kill, killpg},
    unistd::{Pid, Uid},
};
use tokio::sync::watch;

use crate::{
    procfs::{self, ProcessId},
    wait::{self, MAX_WAIT},
};

/// User and group id of browsers, and of other programs without privileges, that root starts. The user owns no files.
const UNPRIVILEGED_ID: u32 = 65_534;

#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    stop_signal: Signal,
    log: watch::Receiver<String>,
    close_stderr: Arc<AtomicBool>,
}

/// The command in a session of its own, with the default reaction to signals, and with this signal if the process that
/// starts it ends.
pub fn in_session(command: &Command, stop_signal: Signal) -> Command {
    let mut wrapped = Command::new("setpriv");
    // `setpriv` instead of `pre_exec`, which needs unsafe code. A service has a session of its own, and where the
    // kernel schedules sessions as groups, that decides its share of the CPU.
    wrapped.args(["--pdeathsig", name_of(stop_signal), "--", "setsid"]);
    // Under `nohup` and in the background of a shell a program would ignore the first two. The other one ends a program that
    // writes beyond a limit of file sizes; without it the write fails, which is how cases let writes fail.
    wrapped.args(["env", "--default-signal=HUP,INT", "--ignore-signal=XFSZ"]);
    wrapped.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => wrapped.env(name, value),
            None => wrapped.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        wrapped.current_dir(directory);
    }
    wrapped
}

/// A command without privileges, of another user if this one is root, because the sandbox of Chromium does not work as
/// root. Its home and directory becomes `home`, which is given to the user.
pub fn unprivileged(program: &Path, home: &Path, stop_signal: Signal) -> Result<Command> {
    let mut command = Command::new("setpriv");
    // Another user does not get the signal of the process that started this one.
    command.args(["--no-new-privs", "--pdeathsig", name_of(stop_signal)]);
    std::fs::set_permissions(home, std::fs::Permissions::from_mode(0o700))?;
    if Uid::effective().is_root() {
        chown(home, Some(UNPRIVILEGED_ID), Some(UNPRIVILEGED_ID))?;
        command.args([format!("--reuid={UNPRIVILEGED_ID}"), format!("--regid={UNPRIVILEGED_ID}")]);
        command.arg("--clear-groups");
    }
    command.arg("--").arg(program).env("HOME", home).env("TMPDIR", home).current_dir(home);
    Ok(command)
}

fn name_of(signal: Signal) -> &'static str {
    signal.as_str().trim_start_matches("SIG")
}

impl Process {
    /// Starts `command` [in a session](in_session), with standard output and standard error collected in one log. It
    /// gets the signal when it is dropped, and if this process ends without stopping it.
    pub fn start(name: &str, command: &Command, stop_signal: Signal) -> Result<Self> {
        Self::spawn(name, in_session(command, stop_signal), stop_signal)
    }

    /// Starts a command of [`in_session`] to which more has been added.
    pub fn spawn(name: &str, mut command: Command, stop_signal: Signal) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child =
            spawn_from_lasting_thread(command).with_context(|| format!("{name} cannot be started"))?;
        let (sender, log) = watch::channel(String::new());
        let sender = Arc::new(sender);
        let close_stderr = Arc::new(AtomicBool::new(false));
        collect(child.stdout.take(), &sender, &Arc::default());
        collect(child.stderr.take(), &sender, &close_stderr);
        Ok(Self { name: name.to_owned(), child, stop_signal, log, close_stderr })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// CPU time that it has used.
    pub fn cpu_time(&self) -> Result<Duration> {
        procfs::cpu_time(self.pid())
    }

    /// What it has written so far, both streams in the order of arrival.
    pub fn log(&self) -> String {
        self.log.borrow().clone()
    }

    /// Its log as it grows; readable after the process has ended.
    pub fn follow_log(&self) -> watch::Receiver<String> {
        self.log.clone()
    }

    /// Closes the reading end of standard error after the next line, as a log collector that crashes does.
    pub fn close_stderr(&self) {
        self.close_stderr.store(true, Ordering::SeqCst);
    }

    /// Waits until `find` finds something in the log.
    pub async fn wait_for<T>(&self, find: impl Fn(&str) -> Option<T>) -> Result<T> {
        let mut log = self.log.clone();
        let found = async {
            loop {
                if let Some(found) = find(&log.borrow_and_update()) {
                    return Some(found);
                }
                // Fails once both streams are closed, which is when the program has ended.
                if log.changed().await.is_err() {
                    return find(&log.borrow());
                }
            }
        };
        match tokio::time::timeout(MAX_WAIT, found).await {
            Ok(Some(found)) => Ok(found),
            Ok(None) => bail!("{} ended early; its log:\n{}", self.name, self.log()),
            Err(_) => bail!("{} has not logged what is expected; its log:\n{}", self.name, self.log()),
        }
    }

    /// Calls `probe` until it returns a value.
    pub async fn wait_until<T>(&self, mut probe: impl FnMut() -> Option<T>) -> Result<T> {
        wait::until_some("the program is ready", async || {
            let found = probe();
            // Both streams are closed: it has ended.
            ensure!(found.is_some() || self.log.has_changed().is_ok(), "{} ended early", self.name);
            Ok(found)
        })
        .await
        .with_context(|| format!("the log of {}:\n{}", self.name, self.log()))
    }

    pub fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill(Pid::from_raw(self.pid().cast_signed()), signal)?)
    }

    /// Waits for the program to end by itself.
    pub async fn ended(&mut self) -> Result<ExitStatus> {
        let child = &mut self.child;
        wait::until_some("the program ends", async || Ok(child.try_wait()?))
            .await
            .with_context(|| format!("the log of {}:\n{}", self.name, self.log.borrow().as_str()))
    }

    /// Ends it with SIGTERM.
    pub async fn stop(&mut self) -> Result<Stopped> {
        let below = procfs::descendants(self.pid());
        let browsers = procfs::browsers(self.pid());
        let workspaces: Vec<_> = browsers.iter().filter_map(|it| it.browser_workspace().ok()).collect();
        self.signal(Signal::SIGTERM)?;
        let started = Instant::now();
        let status = self.ended().await?;
        let duration = started.elapsed();
        let alive = below.iter().filter(|it| it.is_alive()).map(ProcessId::command_line);
        let directories =
            workspaces.iter().filter(|path| path.exists()).map(|path| path.display().to_string());
        Ok(Stopped { status: status.to_string(), duration, left: alive.chain(directories).collect() })
    }
}

/// How a program ended after SIGTERM.
#[derive(Debug)]
pub struct Stopped {
    /// Such as `exit status: 0`.
    pub status: String,
    /// The time for which it drained.
    pub duration: Duration,
    /// Processes and directories that are left.
    pub left: Vec<String>,
}

impl Stopped {
    pub fn text(&self) -> String {
        format!("{} after {:.1} s, left {:?}", self.status, self.duration.as_secs_f64(), self.left)
    }
}

impl Drop for Process {
    /// Kills it if it has not ended within [`MAX_WAIT`].
    fn drop(&mut self) {
        let session = Pid::from_raw(self.child.id().cast_signed());
        let mut is_running = || matches!(self.child.try_wait(), Ok(None));
        if !is_running() {
            return;
        }
        if self.stop_signal != Signal::SIGKILL {
            let _ = kill(session, self.stop_signal);
            let begun = Instant::now();
            while is_running() && begun.elapsed() < MAX_WAIT {
                thread::sleep(Duration::from_millis(5));
            }
        }
        let _ = killpg(session, Signal::SIGKILL);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The rest of the line, or of its JSON string, after a text in a log, once the line is complete.
pub fn rest_of_line(log: &str, text: &str) -> Option<String> {
    let (line, _) = log.split_once(text)?.1.split_once('\n')?;
    let (line, _) = line.split_once('"').unwrap_or((line, ""));
    Some(line.trim().to_owned())
}

fn collect(
    stream: Option<impl Read + Send + 'static>,
    log: &Arc<watch::Sender<String>>,
    close: &Arc<AtomicBool>,
) {
    let Some(stream) = stream else { return };
    let (log, close) = (Arc::clone(log), Arc::clone(close));
    thread::spawn(move || {
        let mut lines = BufReader::new(stream);
        let mut line = Vec::new();
        while matches!(lines.read_until(b'\n', &mut line), Ok(1..)) {
            log.send_modify(|text| text.push_str(&String::from_utf8_lossy(&line)));
            line.clear();
            if close.load(Ordering::SeqCst) {
                return;
            }
        }
    });
}

type Spawned = std::io::Result<Child>;

/// The kernel's parent-death signal follows the thread that forked, so the thread must last as long as the test
/// process.
fn spawn_from_lasting_thread(command: Command) -> Spawned {
    static SPAWNER: LazyLock<mpsc::Sender<(Command, mpsc::Sender<Spawned>)>> = LazyLock::new(|| {
        let (sender, orders) = mpsc::channel::<(Command, mpsc::Sender<Spawned>)>();
        thread::spawn(move || {
            for (mut command, reply) in orders {
                let _ = reply.send(command.spawn());
            }
        });
        sender
    });
    let (reply, answer) = mpsc::channel();
    let gone = || std::io::Error::other("the spawning thread has ended");
    SPAWNER.send((command, reply)).map_err(|_| gone())?;
    answer.recv().map_err(|_| gone())?
}
