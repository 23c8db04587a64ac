//! What a process has in memory, by `/proc/PID/smaps` and `maps`.

use std::fs;
use std::io::Error;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    pub(crate) executable: bool,
    pub(crate) shared: bool,
    pub(crate) offset: u64,
    pub(crate) inode: u64,
    pub(crate) path: String,
    /// It is kept from forks.
    pub(crate) kept: bool,
    /// It is no memory that can be read, or none that core files should have.
    pub(crate) special: bool,
}

/// The pages that V8 allocates are aligned so.
const V8_PAGE: u64 = 256 << 10;

/// All mappings, with their flags.
pub(crate) fn with_flags(pid: i32) -> Result<Vec<Mapping>, Error> {
    Ok(parse(&fs::read_to_string(format!("/proc/{pid}/smaps"))?))
}

/// All mappings as they are now. Flags are those known from before; what V8 allocated since, it keeps from forks.
pub(crate) fn now(pid: i32, before: &[Mapping]) -> Result<Vec<Mapping>, Error> {
    let mut mappings = parse(&fs::read_to_string(format!("/proc/{pid}/maps"))?);
    for mapping in &mut mappings {
        let after = before.partition_point(|known| known.start <= mapping.start);
        let known = before[..after].last().filter(|known| mapping.start < known.end);
        match known {
            Some(known) => (mapping.kept, mapping.special) = (known.kept, known.special),
            None => {
                let anonymous = mapping.inode == 0 && mapping.path.is_empty() && !mapping.shared;
                mapping.kept = anonymous && mapping.start % V8_PAGE == 0;
            }
        }
    }
    Ok(mappings)
}

/// Whether a copy has all private memory of the process that can be read. That which comes from no file, no file has either.
pub(crate) fn has_all(copy: &[Mapping], process: &[Mapping]) -> bool {
    let needed = |mapping: &&Mapping| {
        let is_anonymous = mapping.inode == 0 && !mapping.shared && !mapping.special;
        is_anonymous && mapping.readable && !mapping.path.starts_with("[v")
    };
    process.iter().filter(needed).all(|mapping| {
        // Neighbours may have become one mapping, or one may have become several.
        let first = copy.partition_point(|known| known.end <= mapping.start);
        let end = copy[first..].iter().try_fold(mapping.start, |end, known| {
            if known.start > end { Err(end) } else { Ok(end.max(known.end)) }
        });
        end.unwrap_or_else(|end| end) >= mapping.end
    })
}

/// Ranges that are kept from forks, in as few pieces as there are: advice skips holes, not other mappings.
pub(crate) fn kept(mappings: &[Mapping]) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    let mut open = false;
    for mapping in mappings {
        let usable = mapping.kept && !mapping.special;
        match ranges.last_mut() {
            Some((start, length)) if usable && open => *length = mapping.end - *start,
            _ if usable => ranges.push((mapping.start, mapping.end - mapping.start)),
            _ => {}
        }
        open = usable;
    }
    ranges
}

/// The bytes in memory of what is kept from forks: V8's heap.
pub(crate) fn kept_in_memory(pid: i32) -> Option<u64> {
    Some(resident_and_kept(&fs::read_to_string(format!("/proc/{pid}/smaps")).ok()?))
}

fn resident_and_kept(text: &str) -> u64 {
    let (mut kept, mut resident) = (0, 0);
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("Rss:") {
            resident =
                rest.split_ascii_whitespace().next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0)
                    << 10;
        } else if let Some(flags) = line.strip_prefix("VmFlags:")
            && flags.split_ascii_whitespace().any(|word| word == "dc")
        {
            kept += resident;
        }
    }
    kept
}

fn parse(text: &str) -> Vec<Mapping> {
    let mut mappings: Vec<Mapping> = Vec::new();
    for line in text.lines() {
        if let Some(mapping) = mapping(line) {
            mappings.push(mapping);
        } else if let (Some(flags), Some(mapping)) = (line.strip_prefix("VmFlags:"), mappings.last_mut()) {
            let has = |flag: &str| flags.split_ascii_whitespace().any(|word| word == flag);
            mapping.kept = has("dc");
            mapping.special |= has("io") || has("pf") || has("dd");
        }
    }
    mappings
}

/// `start-end rwxp offset device inode path`
fn mapping(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let rights = words.next().filter(|rights| rights.len() == 4)?.as_bytes();
    let offset = u64::from_str_radix(words.next()?, 16).ok()?;
    let inode = words.nth(1)?.parse().ok()?;
    let path = words.next().unwrap_or_default().trim_start().to_owned();
    Some(Mapping {
        start,
        end,
        readable: rights[0] == b'r',
        writable: rights[1] == b'w',
        executable: rights[2] == b'x',
        shared: rights[3] == b's',
        offset,
        inode,
        special: path.starts_with("[v"),
        path,
        kept: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
00400000-00401000 r-xp 00000000 fe:00 42                         /usr/bin/node with space
VmFlags: rd ex mr mw me
100000-140000 rw-p 00000000 00:00 0 
VmFlags: rd wr mr mw me dc ac
180000-1c0000 rw-p 00000000 00:00 0 
VmFlags: rd wr mr mw me dc ac
1c0000-1c1000 rw-p 00000000 00:00 0 
VmFlags: rd wr mr mw me ac
200000-240000 rw-p 00000000 00:00 0 
VmFlags: rd wr mr mw me dc ac
7ffd000-7ffe000 r--p 00000000 00:00 0                          [vvar]
";

    #[test]
    fn memory_that_is_kept_is_summed() {
        let text = "100-200 rw-p 0 00:00 0 \nRss:      12 kB\nPss: 3 kB\nVmFlags: rd wr dc ac\n\
                    300-400 rw-p 0 00:00 0 \nRss:       8 kB\nVmFlags: rd wr ac\n\
                    500-600 rw-p 0 00:00 0 \nRss:       4 kB\nVmFlags: rd dc\n";
        assert_eq!(resident_and_kept(text), 16 << 10);
    }

    #[test]
    fn ranges_join_over_holes_and_not_over_others() {
        let mappings = parse(SMAPS);
        assert_eq!(mappings.len(), 6);
        assert_eq!(mappings[0].path, "/usr/bin/node with space");
        assert!(mappings[5].special);
        assert_eq!(kept(&mappings), [(0x10_0000, 0xc_0000), (0x20_0000, 0x4_0000)]);
    }

    #[test]
    fn a_copy_lacks_what_no_mapping_covers() {
        let process = parse(
            "100-200 rw-p 0 00:00 0 \n200-300 rw-p 0 00:00 0 \n400-500 ---p 0 00:00 0 \n600-700 rw-s 0 00:01 9 /dev/zero\n",
        );
        assert!(has_all(&process, &process));
        let copy = |text: &str| has_all(&parse(text), &process);
        assert!(copy("0-300 rw-p 0 00:00 0 \n"));
        assert!(copy("80-180 rw-p 0 00:00 0 \n180-300 r--p 0 00:00 0 \n"));
        for lacks in [
            "100-200 rw-p 0 00:00 0 \n",
            "100-180 rw-p 0 00:00 0 \n190-300 rw-p 0 00:00 0 \n",
            "200-300 rw-p 0 00:00 0 \n",
            "",
        ] {
            assert!(!copy(lacks), "{lacks}");
        }
    }
}
