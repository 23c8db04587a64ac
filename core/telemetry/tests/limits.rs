//! If the page cannot be created as it should be, the server must not notice; before there is one, nothing must.

use hasten_telemetry::{Engine, EngineClass, Event, ProcessError, Scan, init, page, pages_of, slot, start};
use std::net::TcpListener;
use std::os::fd::AsRawFd;

/// Forks, and returns what `child` reports. This process itself never calls `init`, so each child starts without a
/// page.
fn in_child(child: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child uses only memory and files, which the C library keeps usable after a fork.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        let passed = child();
        // SAFETY: the last thing the child does.
        unsafe { libc::_exit(i32::from(!passed)) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    status == 0
}

/// The same in a child that counted under a limit on open files.
fn in_limited_child(open_files: libc::rlim_t, child: impl FnOnce() -> bool) -> bool {
    in_child(|| {
        let before = limit(libc::RLIMIT_NOFILE, open_files);
        init("tls");
        start();
        slot().event(Event::PoolHit);
        limit(libc::RLIMIT_NOFILE, before);
        child()
    })
}

/// Sets a soft limit and returns the previous one.
fn limit(resource: libc::__rlimit_resource_t, soft: libc::rlim_t) -> libc::rlim_t {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid place for the answer and a valid request.
    unsafe {
        assert_eq!(libc::getrlimit(resource, &mut limit), 0);
        let before = std::mem::replace(&mut limit.rlim_cur, soft);
        assert_eq!(libc::setrlimit(resource, &limit), 0);
        before
    }
}

/// The descriptors of our pages.
fn descriptors() -> Vec<u32> {
    let ours = |fd: &u32| {
        let link = std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap_or_default();
        link.to_string_lossy().starts_with("/memfd:hasten-")
    };
    (0..1024).filter(ours).collect()
}

fn counted_once() -> bool {
    pages_of(std::process::id()).is_ok_and(|pages| pages[0].read().unwrap().total()[Event::PoolHit] == 1)
}

fn has_no_page() -> bool {
    matches!(pages_of(std::process::id()), Err(ProcessError::NotAccelerated { .. }))
}

#[test]
fn with_few_open_files_allowed_the_descriptors_are_the_last() {
    for (limit, expected) in
        [(1024, [512, 513]), (512, [508, 509]), (256, [252, 253]), (66, [64, 65]), (20, [16, 17])]
    {
        assert!(in_limited_child(limit, || descriptors() == expected && counted_once()), "{limit}");
    }
}

#[test]
fn with_no_open_file_allowed_counting_goes_nowhere_and_harms_nobody() {
    let is_private = || {
        slot().event(Event::PoolHit);
        has_no_page()
    };
    assert!(in_limited_child(0, is_private));
}

/// The limit on the length of files raises a signal, and applies to files in memory too.
#[test]
fn a_process_that_may_not_write_files_lives_on_without_a_page() {
    for length in [0, 4096] {
        assert!(in_child(|| {
            limit(libc::RLIMIT_FSIZE, length);
            init("tls");
            start();
            slot().event(Event::PoolHit);
            descriptors().is_empty() && !counted_once()
        }));
    }
}

#[test]
fn a_process_that_has_not_started_has_nothing_that_others_could_see() {
    assert!(in_child(|| {
        init("tls");
        page().set_note("said before");
        page().register(Engine::Isal, EngineClass::Software, "", 7);
        slot().event(Event::PoolHit);
        let forks_alone = in_child(|| descriptors().is_empty() && has_no_page());
        forks_alone && descriptors().is_empty() && has_no_page()
    }));
}

#[test]
fn what_was_said_before_the_start_is_on_the_page() {
    assert!(in_child(|| {
        init("tls");
        page().set_note("said before");
        page().register(Engine::Isal, EngineClass::Software, "", 7);
        let other = std::thread::spawn(|| {
            slot();
            start();
            slot().event(Event::PoolHit);
        });
        other.join().unwrap();
        let snapshot = pages_of(std::process::id()).unwrap()[0].read().unwrap();
        let engine = snapshot.engine(Engine::Isal).unwrap();
        (snapshot.accelerator.as_str(), snapshot.note.as_str()) == ("tls", "said before")
            && engine.timeout.unwrap().as_nanos() == 7
            && counted_once()
    }));
}

/// Many threads start at once: there is one page, and no count is lost.
#[test]
fn threads_that_start_together_share_one_page() {
    assert!(in_child(|| {
        init("tls");
        let barrier = std::sync::Barrier::new(16);
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    barrier.wait();
                    start();
                    slot().event(Event::PoolHit);
                });
            }
        });
        let descriptors = descriptors().len();
        let pages = pages_of(std::process::id()).unwrap();
        let all = pages[0].read().unwrap().total()[Event::PoolHit];
        (descriptors, pages.len(), all) == (2, 1, 16)
    }));
}

#[test]
fn workers_of_a_process_that_listens_share_its_page() {
    assert!(in_child(|| {
        init("tls");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let worked = in_child(|| {
            start();
            slot().event(Event::PoolHit);
            true
        });
        drop(listener);
        worked && counted_once()
    }));
}

/// A file named like a library of ours, for one test.
struct Library(std::path::PathBuf);

impl Library {
    fn of(test: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("{test}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("libhasten_none.so"), [0; 4096]).unwrap();
        Self(directory)
    }

    /// Makes this process look as if it had loaded the library.
    fn load(&self) {
        let file = std::fs::File::open(self.0.join("libhasten_none.so")).unwrap();
        // SAFETY: a fresh mapping that nothing refers to and that ends with the process.
        let mapped = unsafe {
            libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0)
        };
        assert_ne!(mapped, libc::MAP_FAILED);
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn stands_by() -> bool {
    matches!(pages_of(std::process::id()), Err(ProcessError::StandBy { .. }))
}

/// With and without a failure to create a page: the process behaves the same, apart from what it could not do.
#[test]
fn a_process_that_has_nothing_to_count_is_told_from_one_that_could_make_no_page() {
    let library = Library::of("failed");
    let listed = || Scan::of_host().failed.iter().any(|one| one.pid == std::process::id());
    assert!(in_child(|| {
        init("tls");
        library.load();
        let stood_by = stands_by() && Scan::of_host().standing_by > 0 && !listed();
        let before = limit(libc::RLIMIT_NOFILE, 0);
        start();
        slot().event(Event::PoolHit);
        limit(libc::RLIMIT_NOFILE, before);
        let failed = || matches!(pages_of(std::process::id()), Err(ProcessError::NoPage { .. })) && listed();
        // Its forked child counts where it does.
        stood_by && failed() && in_child(failed)
    }));
}

/// Like a master that executes itself again after forking its workers: the library is there, and nothing was done.
#[test]
fn a_master_without_a_page_is_found_by_those_of_its_workers() {
    let library = Library::of("master");
    assert!(in_child(|| {
        init("tls");
        library.load();
        let master = std::process::id();
        stands_by()
            && in_child(|| {
                start();
                slot().event(Event::PoolHit);
                let pages = pages_of(master).unwrap();
                pages.len() == 1 && pages[0].pids().eq([std::process::id()])
            })
    }));
}

/// A child of vfork has its parent's memory: a page created there would be the parent's, but its descriptors would not.
#[test]
fn a_child_that_shares_its_parents_memory_starts_nothing() {
    extern "C" fn child(_: *mut libc::c_void) -> libc::c_int {
        start();
        0
    }
    assert!(in_child(|| {
        init("tls");
        let mut stack = vec![0_u64; 1 << 14];
        // SAFETY: the child runs on a stack of its own, and this thread waits for its end.
        unsafe {
            let top = stack.as_mut_ptr().add(stack.len()).cast();
            let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
            let pid = libc::clone(child, top, flags, std::ptr::null_mut());
            assert_eq!(libc::waitpid(pid, std::ptr::null_mut(), 0), pid);
        }
        let untouched = has_no_page();
        start();
        slot().event(Event::PoolHit);
        untouched && counted_once() && descriptors().len() == 2
    }));
}

/// Like daemons that close every descriptor they have not opened themselves.
#[test]
fn a_process_that_closes_all_descriptors_goes_on_counting() {
    assert!(in_limited_child(1024, || {
        descriptors().into_iter().for_each(|fd| {
            // SAFETY: a descriptor of this library, which no longer uses it.
            unsafe { libc::close(fd as i32) };
        });
        slot().event(Event::PoolHit);
        start();
        slot().event(Event::PoolHit);
        descriptors().is_empty()
    }));
}
