//! What was in memory: the segments and notes of a core file, over the file's bytes.

use crate::bytes::{half, int, word};
use crate::live::Memory;
use crate::map::Mapped;

/// Contiguous memory that is contiguous in the file, too.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) offset: usize,
    pub(crate) writable: bool,
}

/// A thread as its registers were.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Thread {
    pub(crate) id: i32,
    pub(crate) signal: u16,
    pub(crate) sp: u64,
    /// The frame pointer, in code that keeps one.
    pub(crate) fp: u64,
    /// The instruction that it was at; 0 where that is not known.
    pub(crate) pc: u64,
}

/// A part of a file that was mapped.
#[derive(Debug, Clone)]
pub(crate) struct MappedFile {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Where that part begins in the file.
    pub(crate) offset: u64,
    pub(crate) path: String,
}

/// A core file, taken apart.
#[derive(Debug)]
pub(crate) struct Image<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) segments: Vec<Segment>,
    pub(crate) threads: Vec<Thread>,
    pub(crate) files: Vec<MappedFile>,
    /// The address that an instruction could not use.
    pub(crate) fault: Option<u64>,
    /// What the headers promise and the file does not hold.
    pub(crate) missing: u64,
    /// Bytes of the file that belong to no segment yet: a hostile one names the same bytes again and again.
    left: u64,
    /// Of a process that runs, memory is read as it is asked for, and there are no bytes.
    live: Option<&'a Memory>,
    /// The file that `bytes` are of.
    file: Option<&'a Mapped>,
}

const LOAD: u32 = 1;
const NOTE: u32 = 4;
const CORE_FILE: u16 = 4;
const X86_64: u16 = 62;
/// As many threads as a report could show; a hostile file has no more.
const THREADS: usize = 4096;
const FILES: usize = 65_536;

impl<'a> Image<'a> {
    /// Of a file that is mapped: its pages are given back from time to time.
    pub(crate) fn of_file(file: &'a Mapped) -> Result<Self, &'static str> {
        Ok(Self { file: Some(file), ..Self::parse(file)? })
    }

    /// Gives back the memory of the file.
    pub(crate) fn relieve(&self) {
        self.file.into_iter().for_each(Mapped::relieve);
    }

    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, &'static str> {
        if bytes.len() < 64 || bytes[..5] != *b"\x7fELF\x02" {
            return Err("it does not begin with the header of a 64-bit ELF file");
        }
        if half(bytes, 16) != CORE_FILE {
            return Err("it is an ELF file of another kind");
        }
        if half(bytes, 18) != X86_64 {
            return Err("it comes from another architecture than x86-64");
        }
        let left = bytes.len() as u64;
        let mut image = Self {
            bytes,
            segments: Vec::new(),
            threads: Vec::new(),
            files: Vec::new(),
            fault: None,
            missing: 0,
            left,
            live: None,
            file: None,
        };
        for header in headers(bytes) {
            match header.kind {
                LOAD => image.load(&header),
                NOTE => image.notes(&header),
                _ => {}
            }
        }
        image.merge();
        Ok(image)
    }

    /// Of a process that stands still.
    pub(crate) fn live(
        segments: Vec<Segment>,
        threads: Vec<Thread>,
        files: Vec<MappedFile>,
        memory: &'a Memory,
    ) -> Self {
        let fault = None;
        Self {
            bytes: &[],
            segments,
            threads,
            files,
            fault,
            missing: 0,
            left: 0,
            live: Some(memory),
            file: None,
        }
    }

    fn load(&mut self, header: &Header) {
        let there = (self.bytes.len() as u64).saturating_sub(header.offset).min(header.size).min(self.left);
        self.missing = self.missing.saturating_add(header.size - there);
        let Some(end) = header.address.checked_add(there) else { return };
        if there > 0 {
            self.left -= there;
            self.segments.push(Segment {
                start: header.address,
                end,
                offset: header.offset as usize,
                writable: header.flags & 2 != 0,
            });
        }
    }

    /// Neighbours in memory and in the file become one: a page of V8's heap has parts with different permissions.
    fn merge(&mut self) {
        self.segments.sort_by_key(|segment| (segment.start, segment.end));
        let mut merged: Vec<Segment> = Vec::with_capacity(self.segments.len());
        for next in self.segments.drain(..) {
            match merged.last_mut() {
                Some(last) if next.start < last.end => {} // overlaps: the first one counts
                Some(last)
                    if next.start == last.end
                        && next.offset == last.offset + (last.end - last.start) as usize =>
                {
                    last.end = next.end;
                    last.writable |= next.writable;
                }
                _ => merged.push(next),
            }
        }
        self.segments = merged;
    }

    fn notes(&mut self, header: &Header) {
        let start = usize::try_from(header.offset).unwrap_or(usize::MAX).min(self.bytes.len());
        let end = start.saturating_add(header.size as usize).min(self.bytes.len());
        let mut rest = &self.bytes[start..end];
        while rest.len() >= 12 {
            let (name, size, kind) = (int(rest, 0) as usize, int(rest, 4) as usize, int(rest, 8));
            let data = 12 + name.next_multiple_of(4);
            let next = data.saturating_add(size.next_multiple_of(4));
            let Some(body) = rest.get(data..data.saturating_add(size).min(rest.len())) else { return };
            match kind {
                1 if body.len() >= 336 && self.threads.len() < THREADS => self.threads.push(thread(body)),
                0x5349_4749 => self.fault = self.fault.or_else(|| fault(body)),
                0x4649_4c45 if self.files.is_empty() => self.files = files(body),
                _ => {}
            }
            let Some(after) = rest.get(next..) else { return };
            rest = after;
        }
    }

    pub(crate) fn segment(&self, address: u64) -> Option<&Segment> {
        let after = self.segments.partition_point(|segment| segment.start <= address);
        self.segments[..after].last().filter(|segment| address < segment.end)
    }

    /// Up to `length` bytes; fewer where memory ends.
    pub(crate) fn at(&self, address: u64, length: usize) -> &'a [u8] {
        if let Some(memory) = self.live {
            return memory.at(address, length);
        }
        let Some(segment) = self.segment(address) else { return &[] };
        let offset = segment.offset + (address - segment.start) as usize;
        let there = (segment.end - address) as usize;
        self.bytes.get(offset..offset + length.min(there)).unwrap_or(&[])
    }

    /// The part of a file that was mapped at an address.
    pub(crate) fn file_at(&self, address: u64) -> Option<&MappedFile> {
        self.files.iter().find(|file| (file.start..file.end).contains(&address))
    }

    /// The word at an address; 0 where there is none.
    pub(crate) fn word(&self, address: u64) -> u64 {
        word(self.at(address, 8), 0)
    }
}

struct Header {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    size: u64,
}

fn headers(bytes: &[u8]) -> impl Iterator<Item = Header> {
    let table = word(bytes, 32) as usize;
    // With more than 65,534 segments the number is in the first section header.
    let count = match half(bytes, 56) {
        0xffff => int(bytes, (word(bytes, 40) as usize).saturating_add(44)) as usize,
        count => usize::from(count),
    };
    let there = bytes.len().saturating_sub(table) / 56;
    (0..count.min(there)).map(move |index| {
        let at = table + index * 56;
        Header {
            kind: int(bytes, at),
            flags: int(bytes, at + 4),
            offset: word(bytes, at + 8),
            address: word(bytes, at + 16),
            size: word(bytes, at + 32),
        }
    })
}

/// `struct elf_prstatus`: the signal, the thread, and from 112 on the registers as ptrace orders them.
fn thread(body: &[u8]) -> Thread {
    let register = |index: usize| word(body, 112 + index * 8);
    Thread {
        id: int(body, 32).cast_signed(),
        signal: half(body, 12),
        sp: register(19),
        fp: register(4),
        pc: register(16),
    }
}

/// `siginfo_t`: the signal, and where the kernel tells it, the address.
fn fault(body: &[u8]) -> Option<u64> {
    const OF_MEMORY: [u32; 2] = [7, 11];
    let is_told = body.len() >= 24 && OF_MEMORY.contains(&int(body, 0)) && int(body, 8).cast_signed() > 0;
    is_told.then(|| word(body, 16))
}

fn files(body: &[u8]) -> Vec<MappedFile> {
    let count = (word(body, 0) as usize).min(FILES).min(body.len() / 24);
    let names = body.get(16 + count * 24..).unwrap_or(&[]).split(|&byte| byte == 0);
    // Offsets are in units that come second.
    let unit = word(body, 8);
    let parts = (0..count).map(|index| [0, 8, 16].map(|at| word(body, 16 + index * 24 + at)));
    parts
        .zip(names)
        .map(|([start, end, offset], name)| {
            let path = String::from_utf8_lossy(name).into_owned();
            MappedFile { start, end, offset: offset.wrapping_mul(unit), path }
        })
        .collect()
}
