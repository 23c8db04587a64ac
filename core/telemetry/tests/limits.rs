//! Where the page cannot be made as it should be, the server must not notice.

use hasten_telemetry::{Event, ProcessError, init, pages_of, slot};

/// Forks, limits the number of open files, and reports what `child` says.
/// This process itself never calls `init`, so each child starts without a page.
fn in_limited_child(open_files: libc::rlim_t, child: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child uses memory and files only, which the C library keeps usable after a fork.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        let before = limit_open_files(open_files);
        init("tls");
        slot().event(Event::PoolHit);
        limit_open_files(before);
        let passed = child();
        // SAFETY: the last thing the child does.
        unsafe { libc::_exit(i32::from(!passed)) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    status == 0
}

/// Sets the soft limit and answers what it was.
fn limit_open_files(soft: libc::rlim_t) -> libc::rlim_t {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid place for the answer and a valid request.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit), 0);
        let before = std::mem::replace(&mut limit.rlim_cur, soft);
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &limit), 0);
        before
    }
}

#[test]
fn with_few_open_files_allowed_the_descriptor_stays_low() {
    let counts = || {
        let page = pages_of(std::process::id()).unwrap();
        page[0].read().unwrap().total()[Event::PoolHit] == 1
    };
    assert!(in_limited_child(64, counts));
}

#[test]
fn with_no_open_file_allowed_counting_goes_nowhere_and_harms_nobody() {
    let is_private = || {
        slot().event(Event::PoolHit);
        matches!(pages_of(std::process::id()), Err(ProcessError::NotAccelerated { .. }))
    };
    assert!(in_limited_child(0, is_private));
}
