//! What a DSA or IAA device itself has counted, by the kernel's perf events: descriptors that were submitted to it, and bytes that it
//! has read and written, whoever asked it to. They count from when they are opened, and need `CAP_PERFMON`, or a low
//! `kernel.perf_event_paranoid`.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::FromRawFd;

use crate::discovery::Unit;
use crate::root::Root;

/// What a device has done since its counters were opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    pub descriptors: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
}

/// An event of the hardware: a category, and a set of what is counted in it. One counter counts all of a set.
struct Event {
    category: u64,
    event: u64,
}

/// Submissions that were accepted: by ENQCMD at a limited portal, at an unlimited one, and by MOVDIR64B.
const SUBMITTED: Event = Event { category: 0, event: 0x1 | 0x4 | 0x10 };
const READ: Event = Event { category: 1, event: 0x1 };
const WRITTEN: Event = Event { category: 1, event: 0x2 };

/// Data is counted in pieces of so many bytes.
const PIECE: u64 = 32;

const SOURCES: &str = "sys/bus/event_source/devices";

/// Open counters of one device.
#[derive(Debug)]
pub struct Counters {
    submitted: File,
    read: File,
    written: File,
}

impl Counters {
    /// `None` if this kernel has no counters of the device. An error is the kernel's answer to whoever asks for them.
    pub fn open(root: &Root, unit: &Unit) -> Option<io::Result<Self>> {
        let source = Source::read(root, &unit.name)?;
        Some((|| {
            let [submitted, read, written] = [SUBMITTED, READ, WRITTEN].map(|event| source.open(&event));
            Ok(Self { submitted: submitted?, read: read?, written: written? })
        })())
    }

    pub fn read(&self) -> io::Result<Traffic> {
        Ok(Traffic {
            descriptors: count(&self.submitted)?,
            bytes_read: count(&self.read)?.saturating_mul(PIECE),
            bytes_written: count(&self.written)?.saturating_mul(PIECE),
        })
    }
}

fn count(mut counter: &File) -> io::Result<u64> {
    let mut number = [0; 8];
    counter.read_exact(&mut number)?;
    Ok(u64::from_ne_bytes(number))
}

/// How the kernel wants to be asked for events of a device.
#[derive(Debug, PartialEq, Eq)]
struct Source {
    kind: u32,
    /// Events are of the device, not of a processor; the kernel serves them on this one.
    processor: i32,
    category: Field,
    event: Field,
}

impl Source {
    fn read(root: &Root, unit: &str) -> Option<Self> {
        let base = format!("{SOURCES}/{unit}");
        let field = |name: &str| Field::parse(&root.word(format!("{base}/format/{name}"))?);
        // Such as `0`, or `0-1,4`.
        let processors = root.word(format!("{base}/cpumask"))?;
        Some(Self {
            kind: root.number(format!("{base}/type"))?,
            processor: processors
                .split([',', '-'])
                .next()?
                .parse()
                .ok()
                .filter(|processor| *processor >= 0)?,
            category: field("event_category")?,
            event: field("event")?,
        })
    }

    fn open(&self, event: &Event) -> io::Result<File> {
        let mut attributes =
            Attributes { kind: self.kind, size: size_of::<Attributes>() as u32, ..Attributes::default() };
        let fits = self.category.put(event.category, &mut attributes)
            && self.event.put(event.event, &mut attributes);
        if !fits {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this kernel's format has no room for the event",
            ));
        }
        open(&attributes, self.processor)
    }
}

/// Where in the attributes a number goes, such as `config:4-31`.
#[derive(Debug, PartialEq, Eq)]
struct Field {
    /// `config` or `config1`.
    word: usize,
    low: u32,
    high: u32,
}

impl Field {
    fn parse(text: &str) -> Option<Self> {
        let (word, bits) = text.split_once(':')?;
        let word = ["config", "config1"].iter().position(|name| *name == word)?;
        let (low, high) = bits.split_once('-').unwrap_or((bits, bits));
        let (low, high) = (low.parse().ok()?, high.parse().ok()?);
        (low <= high && high < u64::BITS).then_some(Self { word, low, high })
    }

    /// Says whether there was room.
    fn put(&self, number: u64, attributes: &mut Attributes) -> bool {
        let width = self.high - self.low + 1;
        let word = if self.word == 0 { &mut attributes.config } else { &mut attributes.config1 };
        *word |= number << self.low;
        width == u64::BITS || number < 1 << width
    }
}

/// The first version of the kernel's `perf_event_attr`, which every kernel takes.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
}

const _: () = assert!(size_of::<Attributes>() == 64, "PERF_ATTR_SIZE_VER0");

#[allow(unsafe_code)]
fn open(attributes: &Attributes, processor: i32) -> io::Result<File> {
    const EVERY_PROCESS: libc::pid_t = -1;
    const NO_GROUP: libc::c_int = -1;
    const CLOSE_ON_EXEC: libc::c_ulong = 8;
    let attributes: *const Attributes = attributes;
    // SAFETY: the kernel reads as much of the attributes as their size says, which is theirs, and writes nothing.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            attributes,
            EVERY_PROCESS,
            processor,
            NO_GROUP,
            CLOSE_ON_EXEC,
        )
    };
    let Ok(descriptor @ 0..) = i32::try_from(descriptor) else { return Err(io::Error::last_os_error()) };
    // SAFETY: the kernel has just opened it, and nobody else has it.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux's idxd driver has them.
    const FORMAT: (&str, &str) = ("config:0-3", "config:4-31");

    #[test]
    fn events_are_encoded_as_the_driver_wants_them() {
        let source = Source {
            kind: 30,
            processor: 0,
            category: Field::parse(FORMAT.0).unwrap(),
            event: Field::parse(FORMAT.1).unwrap(),
        };
        let encoded = [SUBMITTED, READ, WRITTEN].map(|event| {
            let mut attributes = Attributes::default();
            assert!(
                source.category.put(event.category, &mut attributes)
                    && source.event.put(event.event, &mut attributes)
            );
            (attributes.config, attributes.config1)
        });
        assert_eq!(encoded, [(0x150, 0), (0x11, 0), (0x21, 0)]);
    }

    #[test]
    fn a_format_that_makes_no_sense_is_none() {
        for text in [
            "",
            "config",
            "config:",
            "config:a",
            "config:5-4",
            "config:0-64",
            "config7:0-3",
            "config:-1",
            "config:0-3,5",
        ] {
            assert_eq!(Field::parse(text), None, "{text}");
        }
        assert_eq!(Field::parse("config1:7"), Some(Field { word: 1, low: 7, high: 7 }));
        let narrow = Field::parse("config:0-3").unwrap();
        assert!(narrow.put(15, &mut Attributes::default()) && !narrow.put(16, &mut Attributes::default()));
        assert!(Field::parse("config:0-63").unwrap().put(u64::MAX, &mut Attributes::default()));
    }
}
