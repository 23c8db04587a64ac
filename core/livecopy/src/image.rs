//! A core file as it is made: its headers, then memory from `/proc`.

use std::fs::File;
use std::io::{Error, Result, Write};
use std::os::unix::fs::FileExt;

use crate::limits::Memory;
use crate::packed::Packer;
use crate::space::Mapping;
use crate::trace::Thread;

const PAGE: u64 = 4096;
const PIECE: u64 = 1 << 20;
/// After so many bytes it is asked whether memory still suffices.
const CHECK: u64 = 64 << 20;
/// A hole of this size, at a multiple of it, is left out.
const HOLE: u64 = 8 << 20;
const MOST: usize = 0xfffe;

#[derive(Debug, Clone, Copy)]
struct Segment {
    start: u64,
    end: u64,
    flags: u32,
}

/// A copy's memory, and the headers that describe it.
pub(crate) struct CoreFile<'a> {
    head: Vec<u8>,
    segments: Vec<Segment>,
    memory: File,
    pages: File,
    pid: i32,
    limits: &'a Memory,
}

impl<'a> CoreFile<'a> {
    /// Of a copy, with the threads of the process that it is a copy of.
    pub(crate) fn of(pid: i32, threads: &[Thread], mappings: &[Mapping], limits: &'a Memory) -> Result<Self> {
        let pages = File::open(format!("/proc/{pid}/pagemap"))?;
        let mut segments = Vec::new();
        for segment in mappings.iter().filter_map(segment) {
            touched(&pages, segment, &mut segments)?;
        }
        if segments.len() > MOST {
            return Err(Error::other("it has more mappings than a core file can describe"));
        }
        Ok(Self {
            head: head(threads, mappings, &segments),
            segments,
            memory: File::open(format!("/proc/{pid}/mem"))?,
            pages,
            pid,
            limits,
        })
    }

    /// Everything, in order; what comes back is how many bytes were in memory.
    pub(crate) fn write(&self, to: &mut Packer<impl Write>) -> Result<u64> {
        to.piece(&self.head)?;
        let (mut present, mut piece, mut entries) = (0, Vec::new(), Vec::new());
        let mut since = 0;
        for segment in &self.segments {
            let mut at = segment.start;
            while at < segment.end {
                let length = (segment.end - at).min(PIECE) as usize;
                entries.resize(length / PAGE as usize * 8, 0);
                self.pages.read_exact_at(&mut entries, at / PAGE * 8)?;
                match self.fill(at, &entries, &mut piece)? {
                    0 => to.zeros(length)?,
                    bytes => {
                        to.piece(&piece)?;
                        present += bytes;
                        since += bytes;
                    }
                }
                if since >= CHECK {
                    since = 0;
                    self.limits.still(self.pid).map_err(Error::other)?;
                }
                at += length as u64;
            }
        }
        Ok(present)
    }

    /// The memory of a piece, by its pages' entries. Pages that were never touched are zeros, and stay untouched.
    fn fill(&self, at: u64, entries: &[u8], piece: &mut Vec<u8>) -> Result<u64> {
        // In memory, or swapped out.
        let there: Vec<bool> = entries.chunks_exact(8).map(|entry| entry[7] >> 6 != 0).collect();
        piece.clear();
        piece.resize(there.len() * PAGE as usize, 0);
        let (mut page, mut present) = (0, 0);
        while page < there.len() {
            let count = there[page..].iter().take_while(|&&is| is).count();
            let bytes = &mut piece[page * PAGE as usize..(page + count) * PAGE as usize];
            self.memory.read_exact_at(bytes, at + page as u64 * PAGE)?;
            present += bytes.len() as u64;
            page += count.max(1);
        }
        Ok(present)
    }
}

/// What the kernel would write, too: memory that is the process's own, and the first page of programs, with their build-ids.
fn segment(mapping: &Mapping) -> Option<Segment> {
    let flags =
        u32::from(mapping.readable) << 2 | u32::from(mapping.writable) << 1 | u32::from(mapping.executable);
    if mapping.special || flags == 0 || mapping.shared {
        return None;
    }
    let whole = mapping.inode == 0 || mapping.writable;
    let end = match whole {
        true => mapping.end,
        false if mapping.offset == 0 => mapping.start + PAGE,
        false => return None,
    };
    Some(Segment { start: mapping.start, end, flags })
}

/// Without what was reserved and never touched: V8 reserves hundreds of megabytes.
fn touched(pages: &File, segment: Segment, segments: &mut Vec<Segment>) -> Result<()> {
    let mut start = segment.start;
    let mut entries = vec![0; (HOLE / PAGE * 8) as usize];
    // Between these bounds whole holes may be.
    let mut at = segment.start.next_multiple_of(HOLE);
    while at + HOLE <= segment.end {
        pages.read_exact_at(&mut entries, at / PAGE * 8)?;
        if entries.chunks_exact(8).all(|entry| entry[7] >> 6 == 0) {
            if start < at {
                segments.push(Segment { start, end: at, ..segment });
            }
            start = at + HOLE;
        }
        at += HOLE;
    }
    if start < segment.end {
        segments.push(Segment { start, ..segment });
    }
    Ok(())
}

fn head(threads: &[Thread], mappings: &[Mapping], segments: &[Segment]) -> Vec<u8> {
    let notes = notes(threads, mappings);
    let headers = 64 + 56 * (segments.len() + 1);
    let start = (headers + notes.len()).next_multiple_of(PAGE as usize);
    let mut file = Vec::with_capacity(start);
    file.extend_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    // A core file of x86-64, version 1.
    for half in [4_u16, 62, 1, 0] {
        file.extend(half.to_le_bytes());
    }
    for word in [0_u64, 64, 0] {
        file.extend(word.to_le_bytes());
    }
    file.extend(0_u32.to_le_bytes());
    for half in [64, 56, segments.len() as u16 + 1, 0, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    let mut header = |kind: u32, flags: u32, words: [u64; 6]| {
        file.extend(kind.to_le_bytes());
        file.extend(flags.to_le_bytes());
        words.iter().for_each(|word| file.extend(word.to_le_bytes()));
    };
    header(4, 0, [headers as u64, 0, 0, notes.len() as u64, notes.len() as u64, 4]);
    let mut offset = start as u64;
    for segment in segments {
        let length = segment.end - segment.start;
        header(1, segment.flags, [offset, segment.start, 0, length, length, PAGE]);
        offset += length;
    }
    file.extend(notes);
    file.resize(start, 0);
    file
}

/// A status for each thread, and the files that are mapped.
fn notes(threads: &[Thread], mappings: &[Mapping]) -> Vec<u8> {
    let mut notes = Vec::new();
    for thread in threads {
        let mut status = vec![0; 336];
        status[32..36].copy_from_slice(&thread.id.to_le_bytes());
        for (index, register) in thread.registers.iter().enumerate() {
            status[112 + index * 8..120 + index * 8].copy_from_slice(&register.to_le_bytes());
        }
        note(&mut notes, 1, &status);
    }
    let files: Vec<&Mapping> =
        mappings.iter().filter(|mapping| mapping.inode != 0 && mapping.path.starts_with('/')).collect();
    let mut list = Vec::new();
    list.extend((files.len() as u64).to_le_bytes());
    list.extend(PAGE.to_le_bytes());
    for file in &files {
        for word in [file.start, file.end, file.offset / PAGE] {
            list.extend(word.to_le_bytes());
        }
    }
    for file in &files {
        list.extend(file.path.as_bytes());
        list.push(0);
    }
    note(&mut notes, 0x4649_4c45, &list);
    notes
}

fn note(notes: &mut Vec<u8>, kind: u32, body: &[u8]) {
    for int in [5, body.len() as u32, kind] {
        notes.extend(int.to_le_bytes());
    }
    notes.extend_from_slice(b"CORE\0\0\0\0");
    notes.extend_from_slice(body);
    notes.resize(notes.len().next_multiple_of(4), 0);
}
