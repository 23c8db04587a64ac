//! Many threads and forked children share the pool.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::text::{Random, text};
use hasten_deflate::engine::{Bits, Chunk, EngineKind, Settings, bound};
use hasten_deflate::{pool, verify};

/// One chunk with one engine; whether the output decodes to its input.
fn round(random: &mut Random, plain: &[u8]) -> bool {
    let kind = EngineKind::ALL[random.next() as usize % 3];
    let settings = Settings { level: 1 + (random.next() % 9) as u8, ..Settings::default() };
    let (history, rest) = plain.split_at(random.next() as usize % 2_000);
    let input = &rest[..random.next() as usize % 20_000];
    let chunk = Chunk { before: Bits::NONE, history, input, last: random.next().is_multiple_of(2) };
    let mut out = pool::scratch(bound(input.len())).expect("memory");
    match pool::compress(kind, &settings, &chunk, &mut out) {
        Some(written) => verify::matches(&settings, &chunk, &out, &written),
        None => kind == EngineKind::Libdeflate && input.is_empty(),
    }
}

#[test]
fn more_threads_than_slots() {
    let plain = text(30_000, 1);
    thread::scope(|scope| {
        for seed in 0..48 {
            let plain = &plain;
            scope.spawn(move || {
                let mut random = Random(seed);
                for _ in 0..40 {
                    assert!(round(&mut random, plain));
                }
            });
        }
    });
}

#[test]
fn a_child_forked_while_others_compress() {
    let plain = text(30_000, 2);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for seed in 0..3 {
            let (plain, done) = (&plain, &done);
            scope.spawn(move || {
                let mut random = Random(seed);
                while !done.load(Ordering::Relaxed) {
                    assert!(round(&mut random, plain));
                }
            });
        }
        let all_well = (0..20).all(|seed| {
            in_child(|| {
                let mut random = Random(seed);
                (0..20).all(|_| round(&mut random, &plain))
            })
        });
        done.store(true, Ordering::Relaxed);
        assert!(all_well);
    });
}

/// Whether `work` is true in a forked child that exits within a minute.
fn in_child(work: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child does what children of servers do, compress and allocate, and exits without running its
    // parent's destructors.
    unsafe {
        match libc::fork() {
            -1 => panic!("cannot fork"),
            0 => {
                libc::alarm(60);
                libc::_exit(i32::from(!work()));
            }
            child => {
                let mut status = 0;
                assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
                libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
            }
        }
    }
}

#[test]
fn scratch_is_as_long_as_asked_and_comes_back() {
    for length in [0, 1, 65_536, 65_537, 300_000, 1 << 20, 3 << 20] {
        let mut first = pool::scratch(length).expect("memory");
        assert_eq!(first.len(), length);
        first.fill(1);
        let second = pool::scratch(length).expect("memory");
        assert!(length == 0 || first.as_ptr() != second.as_ptr(), "two owners of one buffer");
    }
}
