//! The page across threads, forks and the death of workers. Every test forks or
//! counts on the one page of this process, so they share it and each checks
//! only its own counts.

use hasten_telemetry::{
    Algorithm, Doubt, Event, Reason, Snapshot, Suspension, after_fork_child, init, pages_of, slot, start,
};
use std::sync::{Mutex, MutexGuard};

/// Forks `child` and waits until it has ended.
fn in_child(child: impl FnOnce()) -> u32 {
    // SAFETY: the child only counts, which neither allocates nor locks, and ends.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        after_fork_child();
        child();
        // SAFETY: the last thing the child does.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert_eq!(status, 0, "the child failed");
    pid as u32
}

fn snapshot() -> Snapshot {
    let pages = pages_of(std::process::id()).expect("this process has a page");
    assert_eq!(pages.len(), 1, "one page, however often init was called");
    pages[0].read().expect("a page of this version")
}

/// One test at a time, so that each slot's owner is known.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap();
    init("tls");
    start();
    turn
}

#[test]
fn the_parent_sees_what_a_child_counted_even_after_its_death() {
    let _turn = alone();
    let before = snapshot().total();
    let child = in_child(|| {
        slot().batched(Algorithm::Rsa3072Sign, 5, 4_788_000, 4_352_000);
        slot().bypass(Reason::NotPolled);
    });
    let after = snapshot();
    let delta = after.total().since(&before);
    assert_eq!(delta[Algorithm::Rsa3072Sign].batched, 5);
    assert_eq!(delta[Algorithm::Rsa3072Sign].lanes, [0, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(delta[Reason::NotPolled], 1);
    assert_eq!(after.by_pid()[&child][Reason::NotPolled] - before[Reason::NotPolled], 1);
}

#[test]
fn a_child_that_calls_init_again_keeps_the_page() {
    let _turn = alone();
    let before = snapshot();
    in_child(|| {
        init("other");
        start();
        slot().event(Event::ForkReset);
    });
    let after = snapshot();
    assert_eq!(after.total().since(&before.total())[Event::ForkReset], 1);
    assert_eq!((after.accelerator.as_str(), after.creator_pid), ("tls", std::process::id()));
    assert_eq!(after.started, before.started);
}

#[test]
fn a_child_says_for_itself_whether_it_puts_handshakes_aside() {
    let _turn = alone();
    let said = |pid| snapshot().suspensions(|_| true).get(&pid).map(|said| (said.state, said.doubt));
    let off = in_child(|| slot().suspension(Suspension::Off, Some(Doubt::NobodyCame)));
    assert_eq!(said(off), Some((Suspension::Off, Some(Doubt::NobodyCame))));
    let silent = in_child(|| slot().event(Event::ForkReset));
    assert_eq!((said(off), said(silent)), (None, None), "the next one in its slot has not reported");
}

#[test]
fn a_slot_of_a_dead_worker_goes_on_with_the_next() {
    let _turn = alone();
    let first = in_child(|| slot().event_n(Event::PoolRefilled, 3));
    let between = snapshot();
    let second = in_child(|| slot().event_n(Event::PoolRefilled, 4));
    let after = snapshot();
    let slot_of = |snapshot: &Snapshot, pid| snapshot.writers.iter().position(|w| w.pid == pid);
    assert_eq!(slot_of(&between, first), slot_of(&after, second));
    assert_eq!(slot_of(&after, first), None);
    let position = slot_of(&after, second).unwrap();
    assert_eq!(after.writers[position].owners, between.writers[position].owners + 1);
    let count = |s: &Snapshot| s.writers[position].counters[Event::PoolRefilled];
    assert_eq!(count(&after), count(&between) + 4);
    assert!(count(&between) >= 3);
}

#[test]
fn threads_count_in_slots_of_their_own_and_lose_nothing() {
    let _turn = alone();
    let before = snapshot().total();
    let barrier = std::sync::Barrier::new(3);
    let tids: Vec<u32> = std::thread::scope(|scope| {
        let count = || {
            for _ in 0..10_000 {
                slot().event(Event::PoolHit);
            }
            barrier.wait();
            // Alive until both were seen, so that neither takes over the
            // other's slot.
            barrier.wait();
        };
        scope.spawn(count);
        scope.spawn(count);
        barrier.wait();
        let writers = snapshot().writers;
        barrier.wait();
        let counted = |w: &&hasten_telemetry::Writer| w.counters[Event::PoolHit] >= 10_000;
        writers.iter().filter(counted).map(|w| w.tid).collect()
    });
    assert_eq!(tids.len(), 2, "{tids:?}");
    assert_ne!(tids[0], tids[1]);
    assert_eq!(snapshot().total().since(&before)[Event::PoolHit], 20_000);
}

#[test]
fn more_threads_than_slots_share_the_last_and_lose_nothing() {
    const THREADS: usize = 300;
    let _turn = alone();
    let before = snapshot().total();
    let barrier = std::sync::Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                slot().event_n(Event::MacDirect, 1);
                barrier.wait();
                slot().event_n(Event::MacDirect, 9);
            });
        }
    });
    let after = snapshot();
    assert_eq!(after.total().since(&before)[Event::MacDirect], 10 * THREADS as u64);
    assert_eq!(after.writers.len(), hasten_telemetry::SLOT_COUNT);
}

#[test]
fn the_page_is_sealed_high_up_and_read_only_for_others() {
    let _turn = alone();
    slot();
    let (fd, _) = (0..4096)
        .map(|fd| (fd, std::fs::read_link(format!("/proc/self/fd/{fd}"))))
        .find(|(_, link)| link.as_ref().is_ok_and(|l| l.ends_with("memfd:hasten-telemetry (deleted)")))
        .expect("the descriptor stays open for readers without root");
    assert!(fd >= 512, "{fd}");
    // SAFETY: asks for flags of a descriptor; no memory is involved.
    let (seals, flags) = unsafe { (libc::fcntl(fd, libc::F_GET_SEALS), libc::fcntl(fd, libc::F_GETFD)) };
    let wanted = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    assert_eq!(seals & wanted, wanted);
    assert_eq!(flags & libc::FD_CLOEXEC, libc::FD_CLOEXEC);
    let writable = std::fs::OpenOptions::new().write(true).open(format!("/proc/self/fd/{fd}"));
    let refused = writable.and_then(|file| std::os::unix::fs::FileExt::write_at(&file, b"x", 0));
    assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::EPERM));
}
