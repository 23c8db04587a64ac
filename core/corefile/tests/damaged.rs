//! Files that are no core files, or were: an error or a report, never a crash.

use std::fs;

use hasten_corefile::{Core, CoreError, Options};

/// A core file with one segment, whose note ends where it should not.
fn small() -> Vec<u8> {
    let mut file = vec![0; 64 + 56 * 2];
    file[..6].copy_from_slice(b"\x7fELF\x02\x01");
    file[16] = 4;
    file[18] = 62;
    file[32] = 64;
    file[56] = 2;
    // A note that is longer than the file, and a segment at an absurd place of an absurd size.
    file[64] = 4;
    file[64 + 8] = 176;
    file[64 + 32..64 + 40].copy_from_slice(&u64::MAX.to_le_bytes());
    file[120] = 1;
    file[120 + 16..120 + 24].copy_from_slice(&(u64::MAX - 4096).to_le_bytes());
    file[120 + 32..120 + 40].copy_from_slice(&u64::MAX.to_le_bytes());
    file.extend_from_slice(&[0xff; 300]);
    file
}

fn report(bytes: &[u8]) -> Result<(), CoreError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("core");
    fs::write(&path, bytes).unwrap();
    Core::report(&path, &Options::default()).map(drop)
}

#[test]
fn what_is_no_core_file_is_refused_with_the_reason() {
    assert!(matches!(report(b""), Err(CoreError::NoCore { .. })));
    assert!(matches!(
        report(b"hello, this is a text that is longer than the header of a file, is it not"),
        Err(CoreError::NoCore { .. })
    ));
    assert!(matches!(report(&[0x28, 0xb5, 0x2f, 0xfd, 0, 0]), Err(CoreError::Packed { .. })));
    let own = fs::read(std::env::current_exe().unwrap()).unwrap();
    assert!(matches!(report(&own), Err(CoreError::NoCore { .. })));
}

#[test]
fn absurd_headers_end_with_an_error() {
    let file = small();
    assert!(matches!(report(&file), Err(CoreError::NoBinary { .. })));
    for length in 0..file.len() {
        assert!(report(&file[..length]).is_err(), "the first {length} bytes");
    }
    for at in 0..file.len() {
        let mut file = file.clone();
        file[at] ^= 0xff;
        assert!(report(&file).is_err(), "byte {at}");
    }
}
