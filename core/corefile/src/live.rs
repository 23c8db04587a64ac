//! The stacks of a process that stands still for a moment: its memory is read as it is asked for, and no more of it.

use std::cell::OnceCell;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::binary::Binary;
use crate::collection::Collectors;
use crate::error::CoreError;
use crate::image::{Image, MappedFile, Segment, Thread};
use crate::layout::Layout;
use crate::maps::{Maps, NONE};
use crate::objects::View;
use crate::pages::Pages;
use crate::report::Report;

/// Of most pages of a heap only the header is read.
const BLOCK: u64 = 4 << 10;
/// Pieces that do not lie within one block: sources of scripts, above all.
const SPANS: usize = 4096;
const SPAN: usize = 64 << 20;

/// A running process of Node.js, whose program is known.
#[derive(Debug)]
pub struct Live {
    pid: i32,
    memory: PathBuf,
    binary: Binary,
    layout: Layout,
}

/// A thread that stands still.
#[derive(Debug, Clone, Copy)]
pub struct Standing {
    pub id: i32,
    pub stack_pointer: u64,
    pub frame_pointer: u64,
}

impl Live {
    /// Finds out what a process runs; it goes on meanwhile.
    ///
    /// # Errors
    ///
    /// It may not be read, or it is no Node.js that is understood.
    pub fn open(pid: i32, node: Option<&Path>) -> Result<Self, CoreError> {
        let memory = PathBuf::from(format!("/proc/{pid}/mem"));
        let source = Source::open(pid, &memory, &[])?;
        let image = source.image();
        let binary = match node {
            Some(path) => Binary::find(&image, Some(path))?,
            None => program(pid, &image)?,
        };
        let layout = Layout::of(&binary)?;
        Ok(Self { pid, memory, binary, layout })
    }

    /// Its collectors, for as long as it runs; an isolate that starts later has none here.
    ///
    /// # Errors
    ///
    /// It ended, or has no heap of V8.
    pub fn collectors(&self) -> Result<Collectors, CoreError> {
        let source = Source::open(self.pid, &self.memory, &[])?;
        let image = source.image();
        let pages = pages(&image)?;
        let memory =
            File::open(&self.memory).map_err(|error| CoreError::Read { path: self.memory.clone(), error })?;
        Ok(Collectors::of(memory, &image, &pages, &self.layout))
    }

    /// What its threads are doing, while they stand still.
    ///
    /// # Errors
    ///
    /// It ended, or has no heap of V8.
    pub fn stacks(&self, threads: &[Standing], redact: bool) -> Result<Report, CoreError> {
        let source = Source::open(self.pid, &self.memory, threads)?;
        let image = source.image();
        let pages = pages(&image)?;
        let maps = Maps::default();
        let view = View::new(&image, &pages, &self.layout, &maps);
        let mut report = Report::new(Path::new(""), &image, &self.binary, false);
        report.stacks(&view, redact);
        for thread in &mut report.threads {
            let name = fs::read_to_string(format!("/proc/{}/task/{}/comm", self.pid, thread.id));
            if let (Ok(name), true) = (name, thread.id != self.pid) {
                name.trim_end().clone_into(&mut thread.name);
            }
        }
        Ok(report)
    }
}

fn pages(image: &Image<'_>) -> Result<Pages, CoreError> {
    let pages = Pages::find(image).ok_or(CoreError::TooLarge { what: "words", limit: NONE })?;
    if pages.list.is_empty() { Err(CoreError::NoHeap) } else { Ok(pages) }
}

/// Programs are reached through the process: in a container their paths are others, and one that was replaced has none.
fn program(pid: i32, image: &Image<'_>) -> Result<Binary, CoreError> {
    let link = format!("/proc/{pid}/exe");
    let target = fs::read_link(&link).unwrap_or_default();
    let base = image.files.iter().find(|file| Path::new(&file.path) == target).map(|file| file.start);
    Binary::read(Some(image), Path::new(&link), base)
        .or_else(|error| Binary::find(image, None).map_err(|_| error))
}

/// What a process has mapped, and where it is read from.
struct Source {
    segments: Vec<Segment>,
    files: Vec<MappedFile>,
    threads: Vec<Thread>,
    memory: Memory,
}

impl Source {
    fn open(pid: i32, path: &Path, threads: &[Standing]) -> Result<Self, CoreError> {
        let read = |error| CoreError::Read { path: path.to_owned(), error };
        let file = File::open(path).map_err(read)?;
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).map_err(read)?;
        let (mut segments, mut files): (Vec<Segment>, Vec<MappedFile>) = (Vec::new(), Vec::new());
        for line in maps.lines() {
            let Some((segment, path)) = mapping(line) else { continue };
            if path.starts_with('/') && files.last().is_none_or(|file| file.path != path) {
                let path = format!("/proc/{pid}/root{path}");
                files.push(MappedFile { start: segment.start, end: segment.end, offset: 0, path });
            }
            match segments.last_mut() {
                // A page of V8's heap has parts with different permissions.
                Some(last) if last.end == segment.start => {
                    last.end = segment.end;
                    last.writable |= segment.writable;
                }
                _ => segments.push(segment),
            }
        }
        let threads = threads.iter().map(|thread| Thread {
            id: thread.id,
            signal: 0,
            sp: thread.stack_pointer,
            fp: thread.frame_pointer,
            pc: 0,
        });
        let memory = Memory::of(file, &segments);
        Ok(Self { segments, files, threads: threads.collect(), memory })
    }

    fn image(&self) -> Image<'_> {
        Image::live(self.segments.clone(), self.threads.clone(), self.files.clone(), &self.memory)
    }
}

/// `start-end rwxp offset device inode path`, of memory that can be read.
fn mapping(line: &str) -> Option<(Segment, &str)> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let rights = words.next()?.as_bytes();
    let path = words.nth(3).unwrap_or_default().trim_start();
    if rights.first() != Some(&b'r') || rights.get(3) == Some(&b's') || path.starts_with("[v") || start >= end
    {
        return None;
    }
    // Programs and libraries, of which the build-id is asked for.
    let end = if path.starts_with('/') && rights[1] != b'w' { end.min(start + BLOCK) } else { end };
    // There is no file: neighbours in memory are neighbours.
    let offset = usize::try_from(start).ok()?;
    Some((Segment { start, end, offset, writable: rights[1] == b'w' }, path))
}

/// Memory of another process, in blocks that are read once.
#[derive(Debug)]
pub(crate) struct Memory {
    file: File,
    ranges: Vec<Range>,
    spans: Vec<OnceCell<(u64, Box<[u8]>)>>,
}

#[derive(Debug)]
struct Range {
    start: u64,
    end: u64,
    blocks: Vec<OnceCell<Box<[u8]>>>,
}

impl Memory {
    fn of(file: File, segments: &[Segment]) -> Self {
        let range = |segment: &Segment| Range {
            start: segment.start,
            end: segment.end,
            blocks: vec![OnceCell::new(); (segment.end - segment.start).div_ceil(BLOCK) as usize],
        };
        let ranges = segments.iter().map(range).collect();
        Self { file, ranges, spans: vec![OnceCell::new(); SPANS] }
    }

    /// Up to `length` bytes; fewer where memory ends.
    pub(crate) fn at(&self, address: u64, length: usize) -> &[u8] {
        let after = self.ranges.partition_point(|range| range.start <= address);
        let Some(range) = self.ranges[..after].last().filter(|range| address < range.end) else { return &[] };
        let length = length.min((range.end - address) as usize);
        let offset = address - range.start;
        let within = (offset % BLOCK) as usize;
        if within + length > BLOCK as usize {
            return self.span(address, length.min(SPAN));
        }
        let index = (offset / BLOCK) as usize;
        let start = range.start + index as u64 * BLOCK;
        let block =
            range.blocks[index].get_or_init(|| self.read(start, BLOCK.min(range.end - start) as usize));
        &block[within..within + length]
    }

    fn span(&self, address: u64, length: usize) -> &[u8] {
        for cell in &self.spans {
            let (start, bytes) = cell.get_or_init(|| (address, self.read(address, length)));
            if *start == address && bytes.len() >= length {
                return &bytes[..length];
            }
        }
        &[]
    }

    /// Zeros where it is gone.
    fn read(&self, address: u64, length: usize) -> Box<[u8]> {
        let mut bytes = vec![0; length];
        if self.file.read_exact_at(&mut bytes, address).is_err() {
            bytes.fill(0);
        }
        bytes.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_blocks_over_their_edges_and_up_to_its_end() {
        let mut file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..200_000_u32).map(|at| (at % 251) as u8).collect();
        std::io::Write::write_all(&mut file, &bytes).unwrap();
        let segment = |start, end| Segment { start, end, offset: 0, writable: true };
        let memory = Memory::of(file, &[segment(4096, 100_000), segment(150_000, 300_000)]);
        for (at, length, there) in [
            (4096, 8, 8),
            (69_630, 9, 9),
            (69_630, 5000, 5000),
            (8190, 8, 8),
            (99_996, 8, 4),
            (120_000, 8, 0),
            (0, 8, 0),
        ] {
            assert_eq!(memory.at(at as u64, length), &bytes[at..at + there], "{at} {length}");
        }
        // What the kernel has no more is zeros.
        assert_eq!(memory.at(250_000, 8), [0; 8]);
    }

    #[test]
    fn only_memory_that_can_be_read_counts() {
        let told =
            |line| mapping(line).map(|(segment, path)| (segment.start, segment.writable, path.to_owned()));
        let line =
            "00400000-00401000 rw-p 00000000 fe:00 42                         /usr/bin/node with space";
        assert_eq!(told(line), Some((0x40_0000, true, "/usr/bin/node with space".to_owned())));
        assert_eq!(told("7ffd000-7ffe000 r--p 00000000 00:00 0                          [vvar]"), None);
        assert_eq!(told("100000-140000 ---p 00000000 00:00 0 "), None);
        let code = mapping("00400000-00900000 r-xp 00000000 fe:00 42 /usr/bin/node").unwrap().0;
        assert_eq!((code.start, code.end), (0x40_0000, 0x40_1000));
        assert_eq!(told("100000-140000 r-xp 00000000 00:00 0 "), Some((0x10_0000, false, String::new())));
    }
}
