//! Event loops, and the handles that are open in them: sockets, servers, pipes, timers, signals, watched files.
//!
//! libuv's structures are the same in Node 18 to 26. A loop is known by its list of handles, each of which names the loop.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::bytes::{int, word};
use crate::image::Image;
use crate::objects::View;

/// Words that are looked at for loops, in the program's own memory and in stacks, where workers have theirs.
const WORDS: u64 = 1 << 24;
const PROGRAM: u64 = 256 << 20;
const STACK: u64 = 8 << 20;
const LOOPS: usize = 1024;
/// Handles of all loops.
const HANDLES: usize = 1 << 20;
/// As many as are told one by one.
const MOST: usize = 4096;
const TEXT: usize = 512;

/// `uv_loop_t`: active handles, its list of handles, the number of requests.
const LIST: u64 = 16;
const REQUESTS: u64 = 32;
const TIME: u64 = 544;
/// `uv_handle_t`: data, loop, type, a function, the list, a union, the next that closes, flags.
const OF_LOOP: usize = 8;
const KIND: usize = 16;
const IN_LIST: u64 = 32;
const FLAGS: usize = 88;
const HANDLE: usize = 272;
const CLOSING: u32 = 3;
const ACTIVE: u32 = 4;
const REFERENCED: u32 = 8;

/// By libuv's numbers, with the offset of the descriptor where there is one.
const KINDS: [(&str, Option<usize>); 18] = [
    ("", None),
    ("async", None),
    ("check", None),
    ("fs_event", None),
    ("fs_poll", None),
    ("handle", None),
    ("idle", None),
    ("pipe", Some(184)),
    ("poll", Some(152)),
    ("prepare", None),
    ("process", None),
    ("stream", Some(184)),
    ("tcp", Some(184)),
    ("timer", None),
    ("tty", Some(184)),
    ("udp", Some(176)),
    ("signal", None),
    ("file", None),
];

/// The event loop of the main thread, or of a worker.
#[derive(Debug, Serialize)]
pub struct EventLoop {
    pub thread: String,
    /// Requests that wait for the kernel or for the thread pool.
    pub requests: u32,
    /// Handles that keep it running, by type.
    pub active: BTreeMap<&'static str, u64>,
    /// The others: those of Node.js itself, closed ones, and those that were told not to keep it running.
    pub others: BTreeMap<&'static str, u64>,
    /// The active ones first.
    pub handles: Vec<Handle>,
}

#[derive(Debug, Serialize)]
pub struct Handle {
    pub kind: &'static str,
    pub active: bool,
    pub closing: bool,
    /// Whether it keeps the loop running.
    pub referenced: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fd: Option<i32>,
    /// Whose it is in JavaScript, an address, a path, or a time.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub about: String,
}

pub(crate) fn of(view: &View<'_>, redact: bool) -> Vec<EventLoop> {
    let mut left = Left { handles: HANDLES, told: MOST };
    find(view.image).into_iter().map(|(at, thread)| event_loop(view, at, thread, &mut left, redact)).collect()
}

/// Of all loops, in a file that may be damaged.
struct Left {
    handles: usize,
    told: usize,
}

/// Where loops are, and whose they are.
fn find(image: &Image<'_>) -> Vec<(u64, String)> {
    let mut found: Vec<(u64, String)> = Vec::new();
    let mut words = WORDS;
    for (start, end, thread) in places(image) {
        let mut at = start & !7;
        while at.saturating_add(16) <= end && words > 0 && found.len() < LOOPS {
            words -= 1;
            if let Some(of) = at.checked_sub(LIST).filter(|_| is_list(image, at))
                && !found.iter().any(|(known, _)| *known == of)
            {
                found.push((of, thread.clone()));
            }
            at += 8;
        }
    }
    found
}

/// The program's variables, where the loop of the main thread is, and the stacks of the other threads.
fn places(image: &Image<'_>) -> Vec<(u64, u64, String)> {
    let holds_libuv = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        ["node", "libnode", "libuv", "electron"].iter().any(|start| name.starts_with(start))
    };
    let programs: Vec<_> = image.files.iter().filter(|file| holds_libuv(&file.path)).collect();
    // Those that begin with zeros follow the file. What malloc has is farther away, with loops of Node.js's own threads in it.
    let of_program =
        |start: u64| programs.iter().any(|program| (program.start..=program.end).contains(&start));
    let variables = image.segments.iter().filter(|segment| segment.writable && of_program(segment.start));
    let mut places: Vec<_> = variables
        .map(|segment| {
            (segment.start, segment.end.min(segment.start.saturating_add(PROGRAM)), "main".to_owned())
        })
        .collect();
    for (index, thread) in image.threads.iter().enumerate().skip(1) {
        if let Some(segment) = image.segment(thread.sp) {
            places.push((
                thread.sp,
                segment.end.min(thread.sp.saturating_add(STACK)),
                format!("thread {index}"),
            ));
        }
    }
    // What is in the way of both is told as that of a thread.
    places.sort_by_key(|(start, _, thread)| (thread == "main", *start));
    places
}

/// A list that is not empty, whose first entry is a handle of the loop that the list is in.
fn is_list(image: &Image<'_>, list: u64) -> bool {
    let first = image.word(list);
    if first & 7 != 0 || first < 4096 || first == list || image.word(first.saturating_add(8)) != list {
        return false;
    }
    let handle = image.at(first.saturating_sub(IN_LIST), HANDLE);
    word(handle, OF_LOOP) == list - LIST && (1..KINDS.len() as u32).contains(&int(handle, KIND))
}

fn event_loop(view: &View<'_>, at: u64, thread: String, left: &mut Left, redact: bool) -> EventLoop {
    let image = view.image;
    let requests = int(image.at(at + REQUESTS, 4), 0);
    let mut found =
        EventLoop { thread, requests, active: BTreeMap::new(), others: BTreeMap::new(), handles: Vec::new() };
    let list = at + LIST;
    let mut entry = image.word(list);
    while entry != list && left.handles > 0 {
        left.handles -= 1;
        let bytes = image.at(entry.wrapping_sub(IN_LIST), HANDLE);
        if word(bytes, OF_LOOP) != at {
            break;
        }
        let kind = KINDS.get(int(bytes, KIND) as usize).copied().unwrap_or(KINDS[0]);
        let flags = int(bytes, FLAGS);
        let runs = flags & (ACTIVE | REFERENCED) == ACTIVE | REFERENCED;
        *(if runs { &mut found.active } else { &mut found.others }).entry(kind.0).or_default() += 1;
        if left.told > 0 {
            left.told -= 1;
            let fd = kind.1.map(|offset| int(bytes, offset).cast_signed());
            found.handles.push(Handle {
                kind: kind.0,
                active: flags & ACTIVE != 0,
                closing: flags & CLOSING != 0,
                referenced: flags & REFERENCED != 0,
                fd: fd.filter(|&fd| fd >= 0),
                about: if redact { String::new() } else { about(view, at, kind.0, bytes) },
            });
        }
        entry = word(bytes, IN_LIST as usize);
    }
    found.handles.sort_by_key(|handle| !(handle.active && handle.referenced));
    found
}

fn about(view: &View<'_>, event_loop: u64, kind: &str, handle: &[u8]) -> String {
    let own = match kind {
        "fs_event" => text(view.image, word(handle, 96)),
        "pipe" => text(view.image, word(handle, 256)),
        "process" => format!("process {}", int(handle, 104)),
        "signal" => format!("signal {}", int(handle, 104)),
        "timer" => {
            let now = view.image.word(event_loop + TIME);
            format!("due in {} ms", word(handle, 128).saturating_sub(now).min(1 << 40))
        }
        _ => String::new(),
    };
    let parts = [owner(view, word(handle, 0)), own];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

fn text(image: &Image<'_>, at: u64) -> String {
    let bytes = image.at(at, TEXT).split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(bytes).chars().filter(|one| !one.is_control()).collect()
}

/// Node.js keeps in a handle's data its own object, which holds a persistent handle to that of JavaScript, which names its owner.
fn owner(view: &View<'_>, data: u64) -> String {
    let wrap = view.image.word(view.image.word(data.wrapping_add(8)));
    let is_object = |tagged: u64| view.map(tagged).is_some_and(|map| view.layout.is_receiver(map.kind));
    if data & 7 != 0 || !is_object(wrap) {
        return String::new();
    }
    let property = |of: u64, name: &str| {
        view.properties(of).into_iter().find(|(key, _)| key == name).map(|(_, value)| value)
    };
    let owner = property(wrap, "[owner_symbol]").filter(|&owner| is_object(owner)).unwrap_or(wrap);
    let class = view.map(owner).map(|map| view.class(&map, owner)).unwrap_or_default();
    let text = |value: u64| view.name(value, TEXT);
    let address = |name: &str| {
        let peer = property(owner, name).filter(|&peer| is_object(peer))?;
        let port = property(peer, "port").map(|port| view.show(port, false)).unwrap_or_default();
        Some(format!("{}:{port}", text(property(peer, "address")?)?))
    };
    // The family, the address and the port.
    let listening = || {
        text(property(owner, "_connectionKey")?)?
            .split_once(':')
            .map(|(_, place)| format!("listening at {place}"))
    };
    let place = listening().or_else(|| address("_peername")).or_else(|| text(property(owner, "_host")?));
    let process = || text(property(owner, "spawnfile")?);
    let place = place.or_else(process).map(|place| format!(" {place}")).unwrap_or_default();
    format!("{class} @{owner:x}{place}")
}
