//! The read cache's file, which other processes write too, and which may be damaged in any way: what it answers is what
//! was kept under that name, or nothing.

#![no_main]

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;

use arbitrary::Arbitrary;
use hasten_blocks::{Answer, BLOCK, Cursor, FileTag, Identity, Store};
use libfuzzer_sys::fuzz_target;

/// Room for a few sets, so that blocks displace each other.
const BUDGET: u64 = 700 << 10;

#[derive(Debug, Arbitrary)]
enum Step {
    Keep {
        file: u8,
        block: u8,
    },
    Load {
        file: u8,
        block: u8,
        begin: u16,
        len: u16,
    },
    Damage {
        at: u32,
        bytes: [u8; 8],
    },
    /// Moves what is at one place to another: whole entries and blocks, where they do not belong.
    Copy {
        from: u32,
        to: u32,
        len: u16,
    },
    Cut {
        len: u32,
    },
    Open,
}

fuzz_target!(|steps: Vec<Step>| {
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory");
    let mut store = Store::open(directory.path(), BUDGET).expect("a store");
    let raw = OpenOptions::new().read(true).write(true).open(directory.path().join("blocks-1"));
    let (raw, mut cursor) = (raw.expect("its file"), Cursor::new());
    for step in steps.iter().take(200) {
        match *step {
            Step::Keep { file, block } => {
                // A store whose file was cut off has room again as soon as it is written to; all else is no error.
                let _ = store.keep(&mut cursor, name(file, block), &content(file, block));
                cursor.reset();
            }
            Step::Load { file, block, begin, len } => {
                let begin = usize::from(begin) % BLOCK;
                let part = begin..(begin + usize::from(len)).clamp(begin + 1, BLOCK);
                let mut into = vec![0; part.len()];
                let answer = store.load(&mut cursor, name(file, block), part.clone(), &mut into);
                cursor.reset();
                if answer.is_ok_and(|answer| answer == Answer::Hit) {
                    assert_eq!(into, content(file, block)[part], "file {file}, block {block}");
                }
            }
            Step::Damage { at, bytes } => raw.write_all_at(&bytes, within(&raw, at)).expect("written"),
            Step::Copy { from, to, len } => {
                let mut piece = vec![0; usize::from(len)];
                let read = raw.read_at(&mut piece, within(&raw, from)).expect("read");
                raw.write_all_at(&piece[..read], within(&raw, to)).expect("written");
            }
            Step::Cut { len } => raw.set_len(within(&raw, len)).expect("cut"),
            Step::Open => {
                let _ = store.lesson();
                drop(store);
                store =
                    Store::open(directory.path(), BUDGET).expect("whatever is there, a store can be made");
                assert!(store.size() <= BUDGET);
            }
        }
    }
});

fn name(file: u8, block: u8) -> (FileTag, u64) {
    let identity = Identity { inode: u64::from(file % 3), ..Identity::default() };
    (identity.tag([1, 2]), u64::from(block % 97))
}

fn content(file: u8, block: u8) -> [u8; BLOCK] {
    let mut content = [file % 3; BLOCK];
    for (i, byte) in content.iter_mut().enumerate() {
        *byte = byte.wrapping_mul(31).wrapping_add(block % 97).wrapping_add(i as u8);
    }
    content
}

fn within(file: &File, at: u32) -> u64 {
    u64::from(at) % file.metadata().expect("facts").len().max(1)
}
