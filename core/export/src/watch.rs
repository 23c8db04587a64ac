//! A thread that looks at the host: on request, and now and then by itself.
//!
//! There is only ever one look at a time, however many scrapers there are. A look reads `/proc` of every process, which
//! can take long where there are many, so it never happens on the thread that answers.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::collector::{Collector, Look};
use crate::history::History;

/// A look that is younger serves whoever asks.
const FRESH: Duration = Duration::from_millis(500);
/// At least this often, so that programs which live for a short time are seen, and their ends are.
const PERIOD: Duration = Duration::from_secs(5);
/// Looking unasked takes at most this part of one CPU, and on request ten times as much.
const SHARE: u32 = 100;

/// Where looks come from.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    ask: SyncSender<()>,
    latest: watch::Receiver<Option<Seen>>,
    history: Arc<Mutex<History>>,
}

/// A look and when it ended.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) at: Instant,
    pub(crate) look: Arc<Look>,
}

impl Watch {
    /// Begins to look. The thread ends with the last clone of this.
    pub(crate) fn start(collector: Collector) -> std::io::Result<Self> {
        // Room for one: whoever finds it full knows that a look is coming.
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
