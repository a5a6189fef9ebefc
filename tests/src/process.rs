//! A program that a test starts: its log and its exit.
//!
//! Invariant: a dropped [`Process`] has been stopped and reaped; if the test process is killed, the kernel
//! signals the program.

use std::{
    io::{BufRead as _, BufReader, Read},
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
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio::sync::watch;

use crate::{
    procfs,
    wait::{self, MAX_WAIT},
};

/// A running program.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: watch::Receiver<String>,
    close_stderr: Arc<AtomicBool>,
}

impl Process {
    /// Starts `command`, with standard output and standard error collected in one log. If the test process
    /// ends without stopping it, it gets `parent_death_signal`.
    pub fn start(name: &str, command: &Command, parent_death_signal: Signal) -> Result<Self> {
        let mut wrapped = Command::new("setpriv");
        // `setpriv` instead of `pre_exec`, which needs unsafe code. A service has a session of its own, and where the
        // kernel schedules sessions as groups, that decides its share of the CPU.
        let signal = parent_death_signal.as_str().trim_start_matches("SIG");
        wrapped.args(["--pdeathsig", signal, "--", "setsid"]);
        // Under `nohup` and in the background of a shell a program would ignore them.
        wrapped.args(["env", "--default-signal=HUP,INT"]);
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
        wrapped.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child =
            spawn_from_lasting_thread(wrapped).with_context(|| format!("{name} cannot be started"))?;
        let (sender, log) = watch::channel(String::new());
        let sender = Arc::new(sender);
        let close_stderr = Arc::new(AtomicBool::new(false));
        collect(child.stdout.take(), &sender, &Arc::default());
        collect(child.stderr.take(), &sender, &close_stderr);
        Ok(Self { name: name.to_owned(), child, log, close_stderr })
    }

    /// Its number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// CPU time that it has used.
    pub fn cpu_time(&self) -> Result<Duration> {
        procfs::cpu_time(self.pid())
    }

    /// What it has written so far, both streams in the order of arrival.
    #[must_use]
    pub fn log(&self) -> String {
        self.log.borrow().clone()
    }

    /// Its log as it grows; readable after the process has ended.
    #[must_use]
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

    /// Sends a signal.
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

    /// Sends SIGTERM, kills it after [`MAX_WAIT`], and reaps it.
    fn stop(&mut self) {
        let _ = self.signal(Signal::SIGTERM);
        let begun = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && begun.elapsed() < MAX_WAIT {
            thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.stop();
        }
    }
}

/// The rest of the line, or of its JSON string, after a text in a log, once the line is complete.
#[must_use]
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

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Process {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Process::start("a shell", &command, Signal::SIGTERM).unwrap()
    }

    #[tokio::test]
    async fn a_line_is_waited_for_and_the_log_is_kept() {
        let process = shell("echo one; echo two >&2; echo port 7; sleep 600");
        let port = process.wait_for(|log| rest_of_line(log, "port "));
        assert_eq!(port.await.unwrap(), "7");
        assert!(process.log().contains("one\n"));
    }

    #[test]
    fn a_line_is_read_once_it_is_complete() {
        assert_eq!(rest_of_line("x\nmetrics on http://127.0.0.1:1", "metrics on "), None);
        let url = rest_of_line("x\nmetrics on http://127.0.0.1:1\ny", "metrics on ");
        assert_eq!(url.as_deref(), Some("http://127.0.0.1:1"));
    }

    #[tokio::test]
    async fn the_error_of_an_early_end_holds_the_log() {
        let error = shell("echo reason; exit 3").wait_for(|_| None::<()>).await.unwrap_err();
        assert!(error.to_string().contains("reason"), "{error}");
    }

    #[test]
    fn a_dropped_process_has_ended() {
        let process = shell("exec sleep 600");
        let pid = Pid::from_raw(process.pid().cast_signed());
        drop(process);
        assert!(kill(pid, None).is_err());
    }
}
