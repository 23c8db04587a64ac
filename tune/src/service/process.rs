//! One process, as seen in `/proc`.

use std::fs;

/// A process that cannot be confused with a later one of the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// Ticks between boot and its start.
    pub(crate) start: u64,
}

/// The data that the tree needs about a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) start: u64,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    /// It has ended, but its parent has not noticed yet.
    pub(crate) ended: bool,
    /// Ticks on a CPU, for the process including ended threads, and for its children that were waited for.
    pub(crate) ticks: u64,
    pub(crate) resident_pages: u64,
}

impl Process {
    pub(crate) fn of(pid: u32) -> Option<Self> {
        Some(Self { pid, start: Stat::of(pid)?.start })
    }

    /// Its state, if it is still the same process and has not ended.
    pub(crate) fn alive(self) -> Option<Stat> {
        Stat::of(self.pid).filter(|stat| stat.start == self.start && !stat.ended)
    }
}

impl Stat {
    pub(crate) fn of(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name is in parentheses and may contain any of the separators.
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        let id = |at: usize| u32::try_from(number(at)?).ok();
        // Numbered from the state, which is field 3 in proc_pid_stat(5).
        let ticks = number(11)? + number(12)? + number(13)? + number(14)?;
        Some(Self {
            ended: matches!(*fields.first()?, "Z" | "X"),
            parent: id(1)?,
            group: id(2)?,
            session: id(3)?,
            ticks,
            start: number(19)?,
            resident_pages: number(21)?,
        })
    }
}

/// This process.
pub(crate) fn own() -> u32 {
    std::process::id()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_fields() {
        let line = "7 (a) Z 1 (b) S 3 4 5 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 999 4096 55 18446744073709551615";
        let stat = Stat::parse(line).unwrap();
        assert_eq!((stat.parent, stat.group, stat.session, stat.ended), (3, 4, 5, false));
        assert_eq!((stat.ticks, stat.start, stat.resident_pages), (100, 999, 55));
        assert_eq!(Stat::parse("7 (a) S 1"), None);
        assert_eq!(Stat::parse(""), None);
    }

    #[test]
    fn this_process_is_alive_and_its_namesake_of_another_time_is_not() {
        let own = Process::of(own()).unwrap();
        assert!(own.alive().is_some());
        assert!(Process { start: own.start + 1, ..own }.alive().is_none());
    }
}
