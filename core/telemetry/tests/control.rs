//! Engines taken out of service from outside, across forks.

use hasten_telemetry::{
    BreakerState, CONTROL_SIZE, ControlError, Engine, EngineClass, PageHandle, after_fork_child, init,
    is_disabled, page, pages_of, slot, start,
};
use std::sync::{Mutex, MutexGuard};

/// One test at a time: the pages of this process are shared by all tests.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap();
    init("gzip");
    start();
    page().register(Engine::Isal, EngineClass::Software, "", 0);
    turn
}

fn this_page() -> PageHandle {
    pages_of(std::process::id()).expect("this process has a page").remove(0)
}

/// What a process does at every operation.
fn look(engine: Engine) -> bool {
    let disabled = is_disabled(engine);
    let state = if disabled { BreakerState::Disabled } else { BreakerState::Closed };
    slot().engine_state(engine, state, None, 0);
    disabled
}

/// Forks a child that checks ISA-L; returns what it saw.
fn seen_by_child() -> (u32, bool) {
    // SAFETY: the child only counts, which neither allocates nor locks, and ends.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        after_fork_child();
        let disabled = look(Engine::Isal);
        // SAFETY: the last thing the child does.
        unsafe { libc::_exit(i32::from(disabled)) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert!(libc::WIFEXITED(status));
    (pid as u32, libc::WEXITSTATUS(status) != 0)
}

#[test]
fn what_is_disabled_is_seen_by_the_next_operation_and_by_children() {
    let _turn = alone();
    assert!(!look(Engine::Isal));
    let handle = this_page();
    let snapshot = handle.read().unwrap();
    let control = handle.control(&snapshot).unwrap();
    assert!(!control.is_disabled(Engine::Isal).unwrap());

    control.set_disabled(Engine::Isal, true).unwrap();
    assert!(control.is_disabled(Engine::Isal).unwrap());
    assert!(look(Engine::Isal) && !is_disabled(Engine::Libdeflate));
    let (child, disabled) = seen_by_child();
    assert!(disabled, "a child inherits what was set before it was forked");
    let reports = handle.read().unwrap().reports(Engine::Isal, |_| true);
    assert_eq!(reports[&std::process::id()].state, BreakerState::Disabled);
    assert_eq!(reports[&child].state, BreakerState::Disabled);
    let since = reports[&std::process::id()].since;

    look(Engine::Isal);
    let again = handle.read().unwrap().reports(Engine::Isal, |_| true)[&std::process::id()];
    assert_eq!(again.since, since, "looking is no change");

    control.set_disabled(Engine::Isal, false).unwrap();
    assert!(!look(Engine::Isal) && !seen_by_child().1);
    let back = handle.read().unwrap().reports(Engine::Isal, |_| true)[&std::process::id()];
    assert_eq!(back.state, BreakerState::Closed);
    assert!(back.since > since);
}

#[test]
fn a_slot_says_nothing_of_its_last_owners_engines() {
    let _turn = alone();
    let handle = this_page();
    let (child, _) = seen_by_child();
    let reports = |pid| handle.read().unwrap().reports(Engine::Isal, move |writer| writer == pid);
    assert!(reports(child).contains_key(&child));
    std::thread::spawn(|| slot().event(hasten_telemetry::Event::PoolHit)).join().unwrap();
    assert!(reports(child).is_empty(), "a thread of this process has taken the slot over");
}

#[test]
fn the_page_cannot_be_resized_and_nothing_but_zero_is_believed() {
    use std::os::unix::fs::FileExt;
    let _turn = alone();
    let path = (0..4096).map(|fd| format!("/proc/self/fd/{fd}")).find(|path| {
        std::fs::read_link(path).is_ok_and(|link| link.ends_with("memfd:hasten-control (deleted)"))
    });
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path.expect("it stays open")).unwrap();
    assert_eq!(file.metadata().unwrap().len(), CONTROL_SIZE as u64);
    assert!(file.set_len(0).is_err() && file.set_len(1 << 20).is_err());

    let page = this_page();
    let snapshot = page.read().unwrap();
    let mut before = [0; CONTROL_SIZE];
    file.read_exact_at(&mut before, 0).unwrap();
    file.write_all_at(&[0xa5; CONTROL_SIZE], 0).unwrap();
    assert!(Engine::ALL.into_iter().all(is_disabled), "anything but 0 is disabled");
    assert!(matches!(page.control(&snapshot), Err(ControlError::NotAPage)));
    file.write_all_at(&before, 0).unwrap();
    assert!(page.control(&snapshot).is_ok() && !Engine::ALL.into_iter().any(is_disabled));
}
