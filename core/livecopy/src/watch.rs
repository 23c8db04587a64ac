//! Whether a process is about to be ended for want of memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::limits::{self, Memory};
use crate::space;

const MB: u64 = 1 << 20;
/// The heap is full when so much of its limit is in memory, in percent: V8 ends the process when a collection leaves too little.
const HEAP_FULL: u64 = 92;
/// All tasks of the group waited for memory in so much of the last ten seconds, in percent.
const STALLED: f64 = 20.0;
/// What a copy needs has to be there, and this part of the limit more: memory goes on growing until the copy exists.
const MARGIN: u64 = 20;

/// How often it is looked at, unless its heap is full before.
const LOOK: Duration = Duration::from_millis(250);
/// A look itself takes a part of that.
const SOONEST: Duration = Duration::from_millis(10);

/// What has been seen of a process.
#[derive(Debug)]
pub struct Watch {
    pid: i32,
    memory: Memory,
    /// The limit of V8's old generation.
    heap_limit: Option<u64>,
    /// How often the group was at its limit, by its `memory.events`.
    events: Option<u64>,
    /// How large its heap was, and when.
    heap: Option<(Instant, u64)>,
    again: Duration,
}

impl Watch {
    /// Of a process, with the limit of its heap in bytes if it is known better than by its options.
    #[must_use]
    pub fn of(pid: i32, heap_limit: Option<u64>) -> Self {
        let memory = Memory::of(pid);
        let heap_limit = heap_limit.or_else(|| heap_limit_of(pid, memory.limit()));
        let mut watch = Self { pid, memory, heap_limit, events: None, heap: None, again: LOOK };
        watch.events = watch.at_limit();
        watch
    }

    /// The limit of V8's heap that it goes by, in bytes.
    #[must_use]
    pub fn heap_limit(&self) -> Option<u64> {
        self.heap_limit
    }

    #[must_use]
    pub fn is_alive(&self) -> bool {
        fs::read_to_string(format!("/proc/{}/stat", self.pid))
            .ok()
            .and_then(|stat| Some(stat.rsplit_once(") ")?.1.chars().next()? != 'Z'))
            .unwrap_or(false)
    }

    /// When to look again: twice before the heap is full, if it goes on growing as it did.
    #[must_use]
    pub fn again(&self) -> Duration {
        self.again
    }

    /// Why a copy should be taken now, if it should.
    pub fn alarm(&mut self) -> Option<String> {
        let (before, now) = (self.events, self.at_limit());
        self.events = now;
        if let (Some(before), Some(now)) = (before, now)
            && now > before
        {
            return Some(format!("its control group was at its limit {} times", now - before));
        }
        self.short().or_else(|| self.stalled()).or_else(|| self.heap_full())
    }

    /// The group may not have room for a copy much longer.
    fn short(&self) -> Option<String> {
        let (limit, free) = self.memory.limited()?;
        let least = limits::needed(limits::resident(self.pid)) + limit / MARGIN;
        (free < least.min(limit / 2))
            .then(|| format!("{} MB of its control group's {} MB are left", free / MB, limit / MB))
    }

    fn stalled(&self) -> Option<String> {
        let text = fs::read_to_string(self.memory.group()?.join("memory.pressure")).ok()?;
        let share = full_share(&text)?;
        (share >= STALLED).then(|| format!("it waited for memory in {share:.0} % of the last ten seconds"))
    }

    fn heap_full(&mut self) -> Option<String> {
        let limit = self.heap_limit?;
        let heap = space::kept_in_memory(self.pid)?;
        let (now, full) = (Instant::now(), limit / 100 * HEAP_FULL);
        let before = self.heap.replace((now, heap));
        self.again = before.map_or(LOOK, |(then, before)| {
            half_way(now - then, heap.saturating_sub(before), full.saturating_sub(heap))
        });
        (heap >= full)
            .then(|| format!("its heap has {} MB in memory, and {} MB are its limit", heap / MB, limit / MB))
    }

    fn at_limit(&self) -> Option<u64> {
        let text = fs::read_to_string(self.memory.group()?.join("memory.events")).ok()?;
        Some(events(&text))
    }
}

/// In which a heap takes half of the room that is left, if it has grown by so much in a time.
fn half_way(time: Duration, grown: u64, room: u64) -> Duration {
    if grown == 0 || room == 0 {
        return LOOK;
    }
    let seconds = time.as_secs_f64() * room as f64 / grown as f64 / 2.0;
    Duration::from_secs_f64(seconds.clamp(SOONEST.as_secs_f64(), LOOK.as_secs_f64()))
}

/// How often a limit was reached: softly, fully, and with nothing to take back.
fn events(text: &str) -> u64 {
    let number = |line: &str| {
        let (name, number) = line.split_once(' ')?;
        ["high", "max", "oom"].contains(&name).then(|| number.trim().parse::<u64>().ok())?
    };
    text.lines().filter_map(number).sum()
}

fn full_share(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("full "))?;
    line.split_ascii_whitespace().find_map(|word| word.strip_prefix("avg10="))?.parse().ok()
}

/// By the options of the process, or V8's own rule: a quarter of the memory, up to 2 GB, or 4 GB from 15 GB on.
fn heap_limit_of(pid: i32, group: Option<u64>) -> Option<u64> {
    let read = |name: &str| {
        let bytes = fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let (command, environment) = (read("cmdline"), read("environ"));
    let options = environment.split('\0').find_map(|variable| variable.strip_prefix("NODE_OPTIONS="));
    let told = option(command.split('\0')).or_else(|| option(options?.split_ascii_whitespace()));
    told.or_else(|| {
        let machine = limits::total()?;
        let memory = group.map_or(machine, |group| group.min(machine));
        Some((memory / 4).min(if memory >= 15 << 30 { 4 << 30 } else { 2 << 30 }))
    })
}

fn option<'a>(words: impl Iterator<Item = &'a str>) -> Option<u64> {
    let mut words = words.peekable();
    let mut limit = None;
    while let Some(word) = words.next() {
        let name = word.replace('_', "-");
        let Some(rest) = name.strip_prefix("--max-old-space-size") else { continue };
        let number = rest
            .strip_prefix('=')
            .map_or_else(|| words.peek().map(|next| (*next).to_owned()), |number| Some(number.to_owned()));
        limit =
            number.and_then(|number| number.parse::<u64>().ok()).map(|megabytes| megabytes * MB).or(limit);
    }
    limit
}

/// Removes the oldest of the files that have such names, but for as many as are to be kept.
///
/// # Errors
///
/// The folder cannot be read, or a file cannot be removed.
pub fn keep_newest(folder: &Path, prefix: &str, keep: usize) -> std::io::Result<Vec<PathBuf>> {
    let ours = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        // The rest of a name is a number, for the time.
        let time = name.strip_prefix(prefix)?.strip_suffix(".zst")?.parse::<u64>().ok()?;
        Some((time, entry.path()))
    };
    let entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    let mut files: Vec<(u64, PathBuf)> = entries.iter().filter_map(ours).collect();
    files.sort();
    let old = files.len().saturating_sub(keep);
    let removed: Vec<PathBuf> = files.drain(..old).map(|(_, path)| path).collect();
    removed.iter().try_for_each(fs::remove_file)?;
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that is alive, in a group of our own making.
    fn watch(group: &Path, heap_limit: Option<u64>) -> Watch {
        let pid = std::process::id().cast_signed();
        let memory = Memory::in_group(group);
        let mut watch = Watch { pid, memory, heap_limit, events: None, heap: None, again: LOOK };
        watch.events = watch.at_limit();
        watch
    }

    #[test]
    fn the_faster_a_heap_fills_the_sooner_it_is_looked_at() {
        let second = Duration::from_secs(1);
        assert_eq!(half_way(second, 0, 50 * MB), LOOK, "it does not grow");
        assert_eq!(half_way(second, 10 * MB, 500 * MB), LOOK, "it is far from full");
        assert_eq!(half_way(second, 60 * MB, 12 * MB), Duration::from_millis(100));
        assert_eq!(half_way(second, u64::MAX, 1), SOONEST);
        assert_eq!(half_way(LOOK, 60 * MB, 0), LOOK, "it is full, and was copied");
    }

    fn write(group: &Path, name: &str, text: &str) {
        fs::write(group.join(name), text).unwrap();
    }

    #[test]
    fn the_group_raises_an_alarm_by_its_events_its_room_and_its_stalls() {
        let folder = tempfile::tempdir().unwrap();
        let group = folder.path();
        let events = |max: u64| {
            write(group, "memory.events", &format!("low 5\nhigh 2\nmax {max}\noom 0\noom_kill 0\n"));
        };
        write(group, "memory.max", "1073741824\n");
        write(group, "memory.stat", "inactive_file 0\n");
        write(group, "memory.current", "209715200\n");
        write(group, "memory.pressure", "some avg10=90.00 avg60=0\nfull avg10=1.25 avg60=0.00 total=1\n");
        events(3);
        let mut watch = watch(group, None);
        assert_eq!(watch.alarm(), None);
        events(7);
        assert!(watch.alarm().unwrap().contains("at its limit 4 times"));
        assert_eq!(watch.alarm(), None);
        write(group, "memory.current", "1020000000\n");
        assert!(
            watch.alarm().unwrap().contains("51 MB of its control group's 1024 MB"),
            "{:?}",
            watch.alarm()
        );
        // Pages of files go first.
        write(group, "memory.stat", "inactive_file 900000000\n");
        assert_eq!(watch.alarm(), None);
        write(group, "memory.pressure", "full avg10=33.00 avg60=0.00 total=1\n");
        assert!(watch.alarm().unwrap().contains("33 %"));
    }

    #[test]
    fn a_group_without_a_limit_raises_none() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "memory.max", "max\n");
        write(folder.path(), "memory.current", "1\n");
        assert_eq!(watch(folder.path(), None).alarm(), None);
        // Nothing of a test program is kept from forks, as V8 keeps its heap.
        assert_eq!(watch(folder.path(), Some(MB)).alarm(), None);
    }

    #[test]
    fn the_limit_of_the_heap_is_that_of_the_options() {
        let of = |text: &str| option(text.split(' '));
        assert_eq!(of("node --max-old-space-size=512 app.js"), Some(512 * MB));
        assert_eq!(of("node --max_old_space_size 64 app.js"), Some(64 * MB));
        assert_eq!(of("node --max-old-space-size=64 --max-old-space-size=32"), Some(32 * MB));
        assert_eq!(of("node app.js --max-old-space-size"), None);
    }

    #[test]
    fn only_the_oldest_files_of_the_watch_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "core.7.100.zst",
            "core.7.90.zst",
            "core.7.2000.zst",
            "core.8.1.zst",
            "core.7.mine.zst",
            "core.7.1",
        ] {
            write(folder.path(), name, "");
        }
        let removed = keep_newest(folder.path(), "core.7.", 2).unwrap();
        assert_eq!(removed, [folder.path().join("core.7.90.zst")]);
        assert_eq!(keep_newest(folder.path(), "core.7.", 2).unwrap().len(), 0);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5);
    }
}
