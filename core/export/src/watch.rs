//! A thread that looks at the host: on request, and occasionally by itself.
//!
//! Only one look happens at a time, however many scrapers there are. A look reads `/proc` of every process, which can
//! take long where there are many, so it never happens on the thread that answers.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::collector::{Collector, Look};
use crate::history::History;

/// A look younger than this is reused.
const FRESH: Duration = Duration::from_millis(500);
/// At least this often, so that short-lived programs and their ends are seen.
const PERIOD: Duration = Duration::from_secs(5);
/// Unrequested looks take at most this fraction of one CPU, requested ones ten times as much.
const SHARE: u32 = 100;

/// Provides looks.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    ask: SyncSender<()>,
    latest: watch::Receiver<Option<Seen>>,
    history: Arc<Mutex<History>>,
}

/// A look and the time when it ended.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) at: Instant,
    pub(crate) look: Arc<Look>,
}

impl Watch {
    /// Starts looking. The thread ends with the last clone of this.
    pub(crate) fn start(collector: Collector) -> std::io::Result<Self> {
        // Room for one: a full channel means that a look is coming.
        let (ask, asked) = sync_channel(1);
        let (publish, latest) = watch::channel(None);
        let history = Arc::new(Mutex::new(History::default()));
        let recorder = Arc::clone(&history);
        thread::Builder::new()
            .name("look".to_owned())
            .spawn(move || work(collector, &asked, &publish, &recorder))?;
        Ok(Self { ask, latest, history })
    }

    /// The last minutes, as JSON.
    pub(crate) fn history(&self) -> String {
        self.history.lock().unwrap_or_else(PoisonError::into_inner).json()
    }

    /// A look that is no older than half a second, or ten times what a look takes.
    pub(crate) async fn look(&mut self) -> Option<Seen> {
        let asked = Instant::now();
        let is_fresh = |seen: &Seen| {
            let age = asked.saturating_duration_since(seen.at);
            age < FRESH.max(seen.look.took * (SHARE / 10))
        };
        if let Some(seen) = self.latest.borrow_and_update().clone().filter(is_fresh) {
            return Some(seen);
        }
        let _ = self.ask.try_send(());
        let wanted = |seen: &Option<Seen>| seen.as_ref().is_some_and(is_fresh);
        self.latest.wait_for(wanted).await.ok()?.clone()
    }
}

fn work(
    mut collector: Collector,
    asked: &Receiver<()>,
    publish: &watch::Sender<Option<Seen>>,
    history: &Mutex<History>,
) {
    loop {
        let look = Arc::new(collector.look());
        history.lock().unwrap_or_else(PoisonError::into_inner).record(&look);
        let pause = PERIOD.max(look.took * SHARE);
        let _ = publish.send(Some(Seen { at: Instant::now(), look }));
        if asked.recv_timeout(pause) == Err(RecvTimeoutError::Disconnected) {
            return;
        }
    }
}
