//! The store of this process, and what its use may cost.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, Ordering};

use hasten_blocks::Store;
use hasten_blocks::rate::{Allowance, Share};
use hasten_blocks::trial::{Lesson, Side, Trial};
use hasten_guard::breaker::{Breaker, Permit, Settings};
use hasten_guard::{Fault, clock};
use hasten_telemetry::{Event, slot};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, getrlimit};

use crate::config::Config;

/// Keeping blocks may take one in so many parts of the time of reads.
const SHARE: u64 = 25;
/// A write that takes longer is a fault of the device.
const STALL_NS: u64 = 100_000_000;
/// The store's descriptor has a number that programs rarely come to; where the limit is below that, one of the last.
const HIGH: i32 = 900;
const BELOW_LIMIT: i32 = 32;
/// After a failure to open the store.
const RETRY_NS: u64 = 1_000_000_000;

pub(crate) struct Cache {
    pub(crate) store: Store,
    pub(crate) config: &'static Config,
    breaker: Breaker,
    trial: Mutex<Trial>,
    allowance: Allowance,
    pub(crate) share: Share,
}

/// Null until the first read that may be cached. A cache is never freed: its descriptor may have become another's.
static CACHE: AtomicPtr<Cache> = AtomicPtr::new(null_mut());
static OPENING: AtomicBool = AtomicBool::new(false);
static RETRY_AT: AtomicU64 = AtomicU64::new(0);
static DESCRIPTOR: AtomicI32 = AtomicI32::new(-1);

/// Whether this is the store's descriptor. A program that has put a file of its own at this number owns it.
pub(crate) fn owns(fd: i32) -> bool {
    fd >= 0 && fd == DESCRIPTOR.load(Ordering::Relaxed) && {
        // SAFETY: null, or leaked by `open`.
        let cache = unsafe { CACHE.load(Ordering::Acquire).as_ref() };
        cache.map_or_else(|| OPENING.load(Ordering::Relaxed), |cache| cache.store.is_open())
    }
}

/// The cache, opened at the first call.
pub(crate) fn get(config: &'static Config) -> Option<&'static Cache> {
    // SAFETY: null, or leaked by `open`.
    let cache = unsafe { CACHE.load(Ordering::Acquire).as_ref() };
    cache.or_else(|| open(config))
}

#[cold]
fn open(config: &'static Config) -> Option<&'static Cache> {
    let now = clock::boot_ns();
    if now < RETRY_AT.load(Ordering::Relaxed) || OPENING.swap(true, Ordering::Acquire) {
        return None;
    }
    let opened = Store::open_with(&config.directory, config.budget, move_up);
    RETRY_AT.store(now + RETRY_NS, Ordering::Relaxed);
    hasten_telemetry::start();
    let cache = match opened {
        Ok(store) => {
            hasten_telemetry::page().set_note(&format!(
                "read cache of {} MiB in {}",
                store.size() >> 20,
                config.directory.display()
            ));
            let cache = Box::leak(Box::new(Cache::new(store, config)));
            CACHE.store(cache, Ordering::Release);
            Some(&*cache)
        }
        Err(error) => {
            DESCRIPTOR.store(-1, Ordering::Relaxed);
            hasten_telemetry::page().set_note(&format!("no read cache: {error}"));
            None
        }
    };
    OPENING.store(false, Ordering::Release);
    cache
}

/// The same file under a high number, out of the way of what the program opens.
fn move_up(fd: OwnedFd) -> OwnedFd {
    let limit = getrlimit(Resource::Nofile).current.and_then(|limit| i32::try_from(limit).ok());
    let last = limit.map_or(HIGH, |limit| limit - BELOW_LIMIT);
    let high = [HIGH, last].into_iter().filter(|place| *place > fd.as_raw_fd());
    let high = high.filter_map(|place| fcntl_dupfd_cloexec(&fd, place).ok()).next();
    let kept = high.unwrap_or(fd);
    DESCRIPTOR.store(kept.as_raw_fd(), Ordering::Relaxed);
    kept
}

impl Cache {
    fn new(store: Store, config: &'static Config) -> Self {
        let trial = Trial::new(store.lesson(), clock::boot_ns());
        let seed = u64::from(std::process::id());
        Self {
            store,
            config,
            breaker: Breaker::new(Settings::DEFAULT, seed),
            trial: Mutex::new(trial),
            allowance: Allowance::new(config.writes),
            share: Share::one_in(SHARE),
        }
    }

    /// The right to use the store's device once.
    pub(crate) fn admit(&self) -> Option<Permit> {
        if self.breaker.is_closed() { self.breaker.admit(0) } else { self.breaker.admit(clock::boot_ns()) }
    }

    pub(crate) fn succeeded(&self, permit: Permit) {
        if permit.is_probe() {
            self.breaker.succeeded(permit, clock::boot_ns());
        }
    }

    pub(crate) fn failed(&self, permit: Permit, error: &io::Error) {
        if error.raw_os_error() == Some(libc::EFAULT) {
            // The program's memory, and not the device.
            return self.succeeded(permit);
        }
        let fault = if error.kind() == io::ErrorKind::NotFound { Fault::Gone } else { Fault::Error };
        self.breaker.failed(permit, fault, clock::boot_ns());
        slot().event(Event::BreakerOpened);
        let is_lost = fault == Fault::Gone || error.raw_os_error() == Some(libc::EBADF);
        if is_lost {
            // The program closed the descriptor. The number is free or another's: a new store gets a new one.
            DESCRIPTOR.store(-1, Ordering::Relaxed);
            CACHE.store(null_mut(), Ordering::Release);
        }
    }

    /// Who answers a read that both could answer; `None` while the cache rests.
    pub(crate) fn side(&self) -> Option<Side> {
        match self.trial.try_lock() {
            Ok(trial) if !self.config.is_eager => trial.side(clock::boot_ns()),
            // Another thread is just reporting, or was when this process was forked.
            _ => Some(Side::Cache),
        }
    }

    pub(crate) fn report(&self, side: Side, took_ns: u64) {
        let lesson =
            self.trial.try_lock().ok().and_then(|mut trial| trial.report(side, took_ns, clock::boot_ns()));
        if let Some(lesson) = lesson {
            self.learn(&lesson);
        }
    }

    #[cold]
    fn learn(&self, lesson: &Lesson) {
        // The next process finds out by itself what could not be kept.
        let _ = self.store.learn(lesson);
        if !lesson.pays {
            slot().event(Event::ReadCacheRests);
        }
    }

    /// Whether so many bytes of what has just been read may be kept now.
    pub(crate) fn may_keep(&self, bytes: u64) -> bool {
        let is_tried = self.config.is_eager || self.trial.try_lock().is_ok_and(|trial| trial.keeps());
        is_tried
            && (self.config.is_eager || self.share.is_left())
            && self.allowance.take(bytes, clock::boot_ns())
    }

    /// Keeping took so long.
    pub(crate) fn kept(&self, permit: Permit, took_ns: u64) {
        self.share.spend(took_ns);
        if took_ns > STALL_NS {
            self.breaker.failed(permit, Fault::TimedOut, clock::boot_ns());
            slot().event(Event::BreakerOpened);
        }
    }
}
