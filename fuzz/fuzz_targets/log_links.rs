//! Names of files that may be logs, and targets of links that may lead to one: both come from programs and from disks.

#![no_main]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use hasten_logs::{names, place};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&[u8], u32, u64, &[u8])| {
    let (path, pid, number, target) = input;
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    if let Some(kind) = names::kind(name, |_| true) {
        assert!(names::is_possible(name), "a {} that is not possible", kind.name);
        let made = place::of(&place::directory(Path::new("/mnt/fast")), name, pid, number);
        assert!(place::is_ours(made.as_os_str().as_bytes()), "what is made is known again");
        assert_eq!(made.parent(), Some(Path::new("/mnt/fast/hasten-logs")), "and nowhere else");
    }
    assert!(names::kind(name, |_| false).is_none(), "no log without a witness");
    if place::is_ours(target) {
        let path = Path::new(OsStr::from_bytes(target));
        assert!(path.is_absolute());
        assert!(path.parent().is_some_and(|parent| parent.ends_with(place::BELOW)));
    }
});
