//! Calls that may never return, made on a thread that can be abandoned.
//!
//! The worker owns what it works with, including buffers, so that a device which answers too late writes into nobody
//! else's memory. A caller waits no longer than it wants to; a stuck worker is left to itself and ends when its call
//! returns. After a fork the child has no such thread, and starts its own.
//!
//! Device libraries use OpenSSL and zlib, which tear themselves down when the process exits. So at exit no worker
//! begins another call, and calls in progress are waited for, but not for long.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use hasten_names::Engine;

use crate::Fault;

/// The most worker threads of one engine in this process, including stuck ones.
const MOST: usize = 16;

/// Device libraries are not frugal with their stack.
const STACK: usize = 1 << 20;

/// Each engine has its own quota, so that one whose calls hang does not keep another from starting. The last is for all
/// other names.
static LIVE: [AtomicUsize; Engine::COUNT + 1] = [const { AtomicUsize::new(0) }; Engine::COUNT + 1];

/// The process whose threads are counted.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// How long an exit waits for calls into device libraries.
const EXIT_PATIENCE: Duration = Duration::from_millis(250);

/// Calls in progress in this process, of all workers.
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// Whether the process is exiting.
static EXITING: AtomicBool = AtomicBool::new(false);

thread_local! {
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// Whether this is a worker's thread. Device libraries use zlib and OpenSSL themselves: their calls must not come back
/// to a device.
pub fn is_worker() -> bool {
    IS_WORKER.get()
}

/// What runs on a worker's thread.
pub trait Serve: 'static {
    type Request: Send + 'static;
    type Reply: Send + 'static;

    fn serve(&mut self, request: Self::Request) -> Self::Reply;

    /// How often it wants to [look](Self::look) between requests.
    fn looks_every(&self) -> Option<Duration> {
        None
    }

    /// Whether it can continue. If not, the thread ends.
    fn look(&mut self) -> bool {
        true
    }
}

/// A thread that serves one request after another.
pub struct Worker<S: Serve> {
    link: Option<Link<S>>,
    process: u32,
    state: State,
    is_over: Arc<AtomicBool>,
}

struct Link<S: Serve> {
    requests: SyncSender<S::Request>,
    replies: Receiver<Message<S::Reply>>,
}

enum Message<R> {
    Ready(Result<(), Fault>),
    Reply(R),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Starting,
    Idle,
    Busy,
    /// It failed to start, or is gone.
    Ended,
}

impl<S: Serve> Worker<S> {
    /// Starts a thread that first makes its server; [`Self::ready`] reports the outcome. The thread's name is the
    /// engine's, optionally with a suffix behind a hyphen.
    pub fn start(
        name: &str,
        make: impl FnOnce() -> Result<S, Fault> + Send + 'static,
    ) -> Result<Self, Fault> {
        forget_the_parents();
        let live = Live::new(name)?;
        let (requests, inbox) = sync_channel(1);
        let (outbox, replies) = sync_channel(2);
        let is_over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&is_over);
        let serve = move || {
            let (_live, over) = (live, Over(ended));
            IS_WORKER.set(true);
            run(make, &inbox, &outbox, &over);
        };
        rest_at_exit();
        let builder = std::thread::Builder::new().name(name.to_owned()).stack_size(STACK);
        if without_signals(|| builder.spawn(serve)).is_err() {
            return Err(Fault::Init);
        }
        Ok(Self {
            link: Some(Link { requests, replies }),
            process: std::process::id(),
            state: State::Starting,
            is_over,
        })
    }

    /// Whether the thread belongs to this process.
    pub fn is_here(&self) -> bool {
        self.process == std::process::id()
    }

    /// Whether its thread has ended, or is about to.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Whether a reply is due.
    pub fn is_busy(&self) -> bool {
        self.state == State::Busy
    }

    /// `None` while it is starting.
    pub fn ready(&mut self) -> Option<Result<(), Fault>> {
        if !self.is_here() {
            return Some(Err(Fault::Gone));
        }
        if self.state != State::Starting {
            return Some(if self.state == State::Ended { Err(Fault::Gone) } else { Ok(()) });
        }
        let outcome = match self.link.as_ref()?.replies.try_recv() {
            Ok(Message::Ready(outcome)) => outcome,
            Ok(Message::Reply(_)) | Err(TryRecvError::Disconnected) => Err(Fault::Crashed),
            Err(TryRecvError::Empty) => return None,
        };
        self.state = if outcome.is_ok() { State::Idle } else { State::Ended };
        Some(outcome)
    }

    /// Hands over a request without waiting, or gives it back if the worker cannot take it.
    pub fn post(&mut self, request: S::Request) -> Result<(), S::Request> {
        if self.state != State::Idle || !self.is_here() {
            return Err(request);
        }
        let Some(link) = &self.link else { return Err(request) };
        match link.requests.try_send(request) {
            Ok(()) => {
                self.state = State::Busy;
                Ok(())
            }
            Err(TrySendError::Full(request) | TrySendError::Disconnected(request)) => Err(request),
        }
    }

    /// The reply to the posted request, if it comes within `limit`. If not, `None`; the worker stays busy.
    pub fn reply(&mut self, limit: Duration) -> Option<Result<S::Reply, Fault>> {
        if self.state != State::Busy || !self.is_here() {
            return Some(Err(Fault::Gone));
        }
        let received = self.link.as_ref()?.replies.recv_timeout(limit);
        let outcome = match received {
            Ok(Message::Reply(reply)) => Ok(reply),
            Ok(Message::Ready(_)) | Err(RecvTimeoutError::Disconnected) => Err(Fault::Crashed),
            Err(RecvTimeoutError::Timeout) => return None,
        };
        self.state = if outcome.is_ok() { State::Idle } else { State::Ended };
        Some(outcome)
    }
}

impl<S: Serve> Drop for Worker<S> {
    fn drop(&mut self) {
        if !self.is_here() {
            // A thread of the parent may have held the locks inside at the moment of the fork.
            std::mem::forget(self.link.take());
        }
    }
}

/// Marks the thread as ended, even if it ends in an unforeseen way.
struct Over(Arc<AtomicBool>);

impl Over {
    fn tell(&self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Drop for Over {
    fn drop(&mut self) {
        self.tell();
    }
}

/// A place in an engine's quota.
struct Live(&'static AtomicUsize);

impl Live {
    fn new(name: &str) -> Result<Self, Fault> {
        let engine = name.split('-').next().and_then(Engine::from_name);
        let live = Self(&LIVE[engine.map_or(Engine::COUNT, Engine::index)]);
        // Dropping it frees the place.
        if live.0.fetch_add(1, Ordering::AcqRel) < MOST { Ok(live) } else { Err(Fault::Init) }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Forgets the parent's threads, which do not exist in its child.
fn forget_the_parents() {
    let process = std::process::id();
    if OWNER.swap(process, Ordering::AcqRel) != process {
        LIVE.iter().for_each(|live| live.store(0, Ordering::Release));
        CALLS.store(0, Ordering::Release);
    }
}

/// A call into a library.
struct Call;

impl Call {
    fn begin() -> Self {
        CALLS.fetch_add(1, Ordering::SeqCst);
        // Either this sees the exit, or the exit sees this.
        if EXITING.load(Ordering::SeqCst) {
            CALLS.fetch_sub(1, Ordering::SeqCst);
            loop {
                std::thread::park();
            }
        }
        Self
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        CALLS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Exit handlers run in reverse order of registration, and libraries register their teardown on first use: so this is
/// done for each worker, and once more when its library is known to be in use.
fn rest_at_exit() {
    // More registrations would add nothing.
    const MOST: usize = 64;
    static REGISTERED: AtomicUsize = AtomicUsize::new(0);
    if REGISTERED.fetch_add(1, Ordering::Relaxed) < MOST {
        // SAFETY: the function may be called at any time, and its library is never unloaded. If there is no memory to
        // register it, the exit proceeds as it would without it.
        unsafe { libc::atexit(rest) };
    }
}

/// Waits until no worker is in a call.
extern "C" fn rest() {
    // A parent's threads do not exist here. A worker that itself exits the process would wait for itself.
    if OWNER.load(Ordering::Acquire) != std::process::id() || is_worker() {
        return;
    }
    EXITING.store(true, Ordering::SeqCst);
    let began = Instant::now();
    while CALLS.load(Ordering::SeqCst) > 0 && began.elapsed() < EXIT_PATIENCE {
        std::thread::sleep(Duration::from_micros(100));
    }
}

fn run<S: Serve>(
    make: impl FnOnce() -> Result<S, Fault>,
    inbox: &Receiver<S::Request>,
    outbox: &SyncSender<Message<S::Reply>>,
    over: &Over,
) {
    let made = in_call(make);
    rest_at_exit();
    match made {
        Ok(mut server) => {
            if outbox.send(Message::Ready(Ok(()))).is_ok() {
                serve_on(&mut server, inbox, outbox, over);
            }
            // The library closes its session.
            in_call(|| drop(server));
        }
        Err(fault) => _ = outbox.send(Message::Ready(Err(fault))),
    }
}

/// Ends when the other side has been dropped, or the server cannot continue.
fn serve_on<S: Serve>(
    server: &mut S,
    inbox: &Receiver<S::Request>,
    outbox: &SyncSender<Message<S::Reply>>,
    over: &Over,
) {
    let mut look = server.looks_every().map(|every| (every, Instant::now() + every));
    loop {
        let request = match look {
            None => inbox.recv().map_err(RecvTimeoutError::from),
            Some((_, due)) => inbox.recv_timeout(due.saturating_duration_since(Instant::now())),
        };
        match request {
            Ok(request) => {
                let reply = in_call(|| server.serve(request));
                if outbox.send(Message::Reply(reply)).is_err() {
                    return;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if let Some((every, due)) = &mut look
            && Instant::now() >= *due
        {
            // No library is involved in that.
            if !server.look() {
                // Dropping it may hang: its device has failed.
                over.tell();
                return;
            }
            *due = Instant::now() + *every;
        }
    }
}

fn in_call<T>(call: impl FnOnce() -> T) -> T {
    let _call = Call::begin();
    call()
}

/// A thread inherits the signal mask: the program's handlers must not run on ours.
fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    // SAFETY: both sets are writable and made by sigfillset or the kernel; restoring what was read is always valid.
    unsafe {
        let mut all = std::mem::MaybeUninit::<libc::sigset_t>::zeroed().assume_init();
        let mut before = all;
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let outcome = start();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        outcome
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    struct Nothing;

    impl Serve for Nothing {
        type Request = ();
        type Reply = ();

        fn serve(&mut self, (): ()) {}
    }

    #[test]
    fn an_engine_that_hangs_keeps_no_other_from_starting() {
        let start = |name: &str| {
            let (release, stuck) = channel::<()>();
            let make = move || {
                let _ = stuck.recv();
                Ok(Nothing)
            };
            Worker::start(name, make).map(|worker| (worker, release))
        };
        let mut stuck: Vec<_> = (0..MOST).map(|_| start("dlb").unwrap()).collect();
        assert_eq!(start("dlb").err(), Some(Fault::Init));
        assert_eq!(start("dlb-stop").err(), Some(Fault::Init), "the same engine");
        assert!(start("dml").is_ok());
        // One returns, and its place is free again.
        let (worker, release) = stuck.pop().unwrap();
        drop((worker, release));
        while start("dlb").is_err() {
            std::thread::yield_now();
        }
    }

    /// A server that takes a long time.
    struct Slow;

    impl Serve for Slow {
        type Request = Duration;
        type Reply = ();

        fn serve(&mut self, time: Duration) {
            std::thread::sleep(time);
            println!("the call has ended");
        }
    }

    /// Runs this test program again, as a process that exits while a worker is in a call that takes this many
    /// milliseconds.
    fn output_of_an_exit_in_a_call(milliseconds: &str) -> String {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "--nocapture", "worker::tests::an_exit_waits_for_calls_but_not_for_ever"]);
        let output = command.env(IN_CALL, milliseconds).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    const IN_CALL: &str = "HASTEN_TEST_CALL_MILLISECONDS";

    #[test]
    fn an_exit_waits_for_calls_but_not_for_ever() {
        if let Some(milliseconds) = std::env::var(IN_CALL).ok().and_then(|text| text.parse().ok()) {
            let mut worker = Worker::start("dml", || Ok(Slow)).unwrap();
            while worker.ready().is_none() {
                std::thread::yield_now();
            }
            worker.post(Duration::from_millis(milliseconds)).unwrap();
            while CALLS.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            std::process::exit(0);
        }
        assert!(output_of_an_exit_in_a_call("50").contains("the call has ended"));
        assert!(!output_of_an_exit_in_a_call("60000").contains("the call has ended"));
    }
}
