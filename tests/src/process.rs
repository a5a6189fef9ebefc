//! A started program: its log, its end.
//!
//! Invariant: a [`Process`] that is dropped has been ended and reaped, and one whose test process
//! was killed is told to end by the kernel.

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

use anyhow::{Context as _, Result, bail};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio::sync::watch;

/// How long a start may take before it counts as failed. Far beyond what any machine needs: it
/// only keeps a broken start from hanging the run.
const START_LIMIT: Duration = Duration::from_mins(3);
/// How long a program may take to end by itself once it was asked to, before it is killed.
const END_LIMIT: Duration = Duration::from_secs(45);

/// A running program.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: watch::Receiver<String>,
    deaf: Arc<AtomicBool>,
}

impl Process {
    /// Starts `command`, with standard output and standard error collected in one log, and with
    /// `on_our_death` sent to it should the test process end without stopping it.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(name: &str, command: &Command, on_our_death: Signal) -> Result<Self> {
        let mut wrapped = Command::new("setpriv");
        // Without `pre_exec`, which would need unsafe code.
        wrapped.args(["--pdeathsig", on_our_death.as_str().trim_start_matches("SIG"), "--"]);
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
            spawn_from_lasting_thread(wrapped).with_context(|| format!("{name} does not start"))?;
        let (sender, log) = watch::channel(String::new());
        let sender = Arc::new(sender);
        let deaf = Arc::new(AtomicBool::new(false));
        collect(child.stdout.take(), &sender, &Arc::default());
        collect(child.stderr.take(), &sender, &deaf);
        Ok(Self { name: name.to_owned(), child, log, deaf })
    }

    /// Its number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has written so far, both streams in the order of arrival.
    #[must_use]
    pub fn log(&self) -> String {
        self.log.borrow().clone()
    }

    /// Its log as it is and as it grows, also after the process is gone.
    #[must_use]
    pub fn follow_log(&self) -> watch::Receiver<String> {
        self.log.clone()
    }

    /// Closes standard error after its next line, as the end of a log collector would.
    pub fn stop_reading_errors(&self) {
        self.deaf.store(true, Ordering::SeqCst);
    }

    /// Waits until `find` finds something in the log.
    ///
    /// # Errors
    /// When the program ends first; the error holds its log.
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
        match tokio::time::timeout(START_LIMIT, found).await {
            Ok(Some(found)) => Ok(found),
            Ok(None) => bail!("{} ended before it was ready; it said:\n{}", self.name, self.log()),
            Err(_) => bail!("{} is not ready after {START_LIMIT:?}; it said:\n{}", self.name, self.log()),
        }
    }

    /// Asks `probe` again and again until it finds something.
    ///
    /// # Errors
    /// When the program ends first; the error holds its log.
    pub async fn wait_until<T>(&self, mut probe: impl FnMut() -> Option<T>) -> Result<T> {
        let started = Instant::now();
        loop {
            if let Some(found) = probe() {
                return Ok(found);
            }
            // Both streams closed: it has ended.
            if self.log.has_changed().is_err() || started.elapsed() > START_LIMIT {
                bail!("{} does not get ready; it said:\n{}", self.name, self.log());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill(Pid::from_raw(self.pid().cast_signed()), signal)?)
    }

    /// Waits, without blocking the executor, for the program to end by itself.
    ///
    /// # Errors
    /// When it does not end within a generous limit; the error holds its log.
    pub async fn ended(&mut self) -> Result<ExitStatus> {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if started.elapsed() > START_LIMIT {
                bail!("{} does not end; it said:\n{}", self.name, self.log());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Asks it to end, kills it if it does not, and reaps it.
    fn stop(&mut self) {
        let _ = self.signal(Signal::SIGTERM);
        let asked = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && asked.elapsed() < END_LIMIT {
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

fn collect(
    stream: Option<impl Read + Send + 'static>,
    log: &Arc<watch::Sender<String>>,
    deaf: &Arc<AtomicBool>,
) {
    let Some(stream) = stream else { return };
    let (log, deaf) = (Arc::clone(log), Arc::clone(deaf));
    thread::spawn(move || {
        let mut lines = BufReader::new(stream);
        let mut line = Vec::new();
        while matches!(lines.read_until(b'\n', &mut line), Ok(1..)) {
            log.send_modify(|text| text.push_str(&String::from_utf8_lossy(&line)));
            line.clear();
            if deaf.load(Ordering::SeqCst) {
                return;
            }
        }
    });
}

type Spawned = std::io::Result<Child>;

/// The kernel's "parent has died" signal is about the thread that forked, so the thread must last
/// as long as the test process.
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
    let gone = || std::io::Error::other("the spawning thread is gone");
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
        let port = process.wait_for(|log| Some(log.split_once("port ")?.1.split_once('\n')?.0.to_owned()));
        assert_eq!(port.await.unwrap(), "7");
        assert!(process.log().contains("one\n"));
    }

    #[tokio::test]
    async fn an_early_end_is_told_with_the_log() {
        let error = shell("echo reason; exit 3").wait_for(|_| None::<()>).await.unwrap_err();
        assert!(error.to_string().contains("reason"), "{error}");
    }

    #[test]
    fn a_dropped_process_is_gone() {
        let process = shell("exec sleep 600");
        let pid = Pid::from_raw(process.pid().cast_signed());
        drop(process);
        assert!(kill(pid, None).is_err());
    }
}
