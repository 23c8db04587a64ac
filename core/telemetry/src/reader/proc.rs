//! Mappings and names from `/proc`.

use crate::memory::MARK_SIZE;
use std::path::PathBuf;
use std::{fs, io};

/// How a counter page is named in `/proc/PID/maps` and `/proc/PID/fd`.
pub(super) const PAGE_LINK: &[u8] = b"/memfd:hasten-telemetry (deleted)";
/// The same for a control page.
pub(super) const CONTROL_LINK: &[u8] = b"/memfd:hasten-control (deleted)";

/// The name of the mark's memory there; a process that could not create a page has a mark.
const MARK_LINK: &[u8] = b"/dev/zero (deleted)";

/// One mapping of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) inode: u64,
}

/// The pages of both kinds among a process's mappings, whether any hasten library is mapped, and
/// whether it failed to create a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Mappings {
    pub(super) pages: Vec<Mapping>,
    pub(super) controls: Vec<Mapping>,
    pub(super) has_library: bool,
    pub(super) has_failed: bool,
}

impl Mappings {
    /// Why a process without a page has none.
    pub(super) fn absence(&self) -> Absence {
        match (self.has_library, self.has_failed) {
            (false, _) => Absence::Foreign,
            (true, true) => Absence::Failed,
            (true, false) => Absence::StandBy,
        }
    }
}

/// Why a process has no page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absence {
    /// It has no library of ours.
    Foreign,
    /// It has had nothing to count so far.
    StandBy,
    /// It failed to create one.
    Failed,
}

pub(super) fn mappings(pid: u32) -> io::Result<Mappings> {
    Ok(parse_maps(&fs::read(format!("/proc/{pid}/maps"))?))
}

/// Every process of this host, without threads.
pub(super) fn pids() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    pids
}

pub(super) fn exists(pid: u32) -> bool {
    fs::exists(format!("/proc/{pid}")).unwrap_or(false)
}

/// The name of the executable, or the name the process gave itself.
pub(super) fn program(pid: u32) -> String {
    let executable = fs::read_link(format!("/proc/{pid}/exe")).ok();
    let name = executable.as_deref().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    let name = name.or_else(|| fs::read_to_string(format!("/proc/{pid}/comm")).ok()).unwrap_or_default();
    name.trim().trim_end_matches(" (deleted)").replace(char::is_control, "\u{fffd}")
}

/// Whether `ancestor` started the process, directly or through others.
pub(super) fn is_descendant(pid: u32, ancestor: u32) -> bool {
    // Numbers are reused while this runs, so it could go in circles.
    const DEEPEST: usize = 64;
    std::iter::successors(parent(pid), |pid| parent(*pid)).take(DEEPEST).any(|pid| pid == ancestor)
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may contain anything, including brackets.
    let after_name = stat.rsplit(|byte| *byte == b')').next()?;
    str::from_utf8(after_name).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// A process's number in its own PID namespace.
pub(super) fn namespace_pid(pid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    numbers.and_then(|numbers| numbers.split_whitespace().last()?.parse().ok()).unwrap_or(pid)
}

/// Links in `/proc/PID/fd` that look like such a page.
pub(super) fn descriptors(pid: u32, link: &[u8]) -> io::Result<Vec<PathBuf>> {
    use std::os::unix::ffi::OsStrExt;
    let entries = fs::read_dir(format!("/proc/{pid}/fd"))?.flatten().map(|entry| entry.path());
    let is_page =
        |path: &PathBuf| fs::read_link(path).is_ok_and(|found| found.as_os_str().as_bytes() == link);
    Ok(entries.filter(is_page).collect())
}

fn parse_maps(maps: &[u8]) -> Mappings {
    let mut found = Mappings::default();
    for line in maps.split(|byte| *byte == b'\n') {
        for (link, mappings) in [(PAGE_LINK, &mut found.pages), (CONTROL_LINK, &mut found.controls)] {
            if line.ends_with(link) {
                mappings.extend(parse_mapping(line, link));
            }
        }
        found.has_failed |= line.ends_with(MARK_LINK) && is_mark(line);
        found.has_library |= line.rsplit(|byte| *byte == b'/').next().is_some_and(is_library);
    }
    found
}

fn is_library(name: &[u8]) -> bool {
    name.starts_with(b"libhasten_") && (name.ends_with(b".so") || name.ends_with(b".so (deleted)"))
}

/// Inaccessible shared memory of the mark's size.
fn is_mark(line: &[u8]) -> bool {
    let is_closed = line.split(|byte| *byte == b' ').nth(1) == Some(b"---s");
    let size = parse_mapping(line, MARK_LINK).map(|mapping| mapping.end.wrapping_sub(mapping.start));
    is_closed && size == Some(MARK_SIZE as u64)
}

/// `start-end perms offset major:minor inode   path`.
fn parse_mapping(line: &[u8], link: &[u8]) -> Option<Mapping> {
    let mut fields = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let inode = fields.nth(3)?;
    // The path must follow immediately: a name with spaces in front of it is not ours.
    (fields.next()?.as_bytes() == link.split(|byte| *byte == b' ').next()?).then_some(())?;
    Some(Mapping {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        inode: inode.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
55c0a0000000-55c0a0021000 r--p 00000000 fd:00 1234                       /usr/sbin/nginx
7f0a3c000000-7f0a3c101000 rw-s 00000000 00:01 2049                       /memfd:hasten-telemetry (deleted)
7f0a3c200000-7f0a3c301000 rw-s 00000000 00:01 2050                       /memfd:other (deleted)
7f0a3c102000-7f0a3c103000 rw-s 00000000 00:01 2052                       /memfd:hasten-control (deleted)
7f0a3c300000-7f0a3c401000 rw-s 00000000 00:01 2051                       /tmp/x /memfd:hasten-telemetry (deleted)
7ffd4f5c7000-7ffd4f5e8000 rw-p 00000000 00:00 0                          [stack]
";

    #[test]
    fn finds_the_page_and_nothing_that_only_looks_like_it() {
        let found = parse_maps(MAPS.as_bytes());
        let page = Mapping { start: 0x7f0a_3c00_0000, end: 0x7f0a_3c10_1000, inode: 2049 };
        let control = Mapping { start: 0x7f0a_3c10_2000, end: 0x7f0a_3c10_3000, inode: 2052 };
        assert_eq!(found, Mappings { pages: vec![page], controls: vec![control], ..Mappings::default() });
    }

    #[test]
    fn sees_a_library_without_a_page_even_when_its_file_was_replaced() {
        for (name, expected) in [
            ("/usr/lib/hasten/libhasten_tls.so", true),
            ("/usr/lib/hasten/libhasten_tls.so (deleted)", true),
            ("/usr/lib/hasten/readme", false),
            ("/usr/lib/libssl.so.3", false),
        ] {
            let maps = format!("7f0a3c000000-7f0a3c101000 r-xp 00000000 fd:00 77 {name}\n");
            assert_eq!(parse_maps(maps.as_bytes()).has_library, expected, "{name}");
        }
    }

    #[test]
    fn the_mark_is_known_by_its_size_and_by_who_may_use_it() {
        for (mapping, expected) in [
            ("7f0a3c000000-7f0a3c011000 ---s 00000000 00:01 77   /dev/zero (deleted)", true),
            ("7f0a3c000000-7f0a3c011000 rw-s 00000000 00:01 77   /dev/zero (deleted)", false),
            ("7f0a3c000000-7f0a3c012000 ---s 00000000 00:01 77   /dev/zero (deleted)", false),
            ("7f0a3c000000-7f0a3c011000 ---s 00000000 00:01 77   /tmp/x /dev/zero (deleted)", false),
            ("7f0a3c000000-7f0a3c011000 ---p 00000000 00:00 0", false),
        ] {
            assert_eq!(parse_maps(mapping.as_bytes()).has_failed, expected, "{mapping}");
        }
    }

    #[test]
    fn this_process_has_a_name_and_its_own_number() {
        assert!(program(std::process::id()).starts_with("hasten_telemetry"));
        assert!(pids().contains(&std::process::id()));
        assert_ne!(namespace_pid(std::process::id()), 0);
    }

    proptest::proptest! {
        #[test]
        fn any_maps_file_parses(maps: Vec<u8>) {
            parse_maps(&maps);
        }

        #[test]
        fn any_line_with_our_name_parses(front in "[ -~]{0,60}") {
            let line = format!("{front} /memfd:hasten-telemetry (deleted)");
            let pages = parse_maps(line.as_bytes()).pages;
            proptest::prop_assert!(pages.len() <= 1);
        }
    }
}
