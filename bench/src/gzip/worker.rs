//! A process that compresses the corpus with one engine on request, and reports the cost.
//!
//! Engines run in separate processes so that the accelerated one is what users have: a program that calls zlib, with a
//! library preloaded. It reads a [`Task`] from each line of its input and answers with a [`Reply`] on its output.

mod abi;

use std::fs;
use std::io::{self, BufRead, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use flate2::bufread::GzDecoder;
use hasten_deflate::engine::{Bits, Chunk, EngineKind, Settings};
use hasten_deflate::{checksum, pool};
use serde::{Deserialize, Serialize};

use self::abi::Zlib;
use super::Engine;
use super::corpus::{Corpus, File};
use crate::cpu;

/// Files that are compressed before the clock starts.
const WARM_UP: usize = 4;

/// A line of the worker's input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Task {
    pub(super) work: Work,
    /// Whole passes over the corpus, at least one, until this much CPU time has been used.
    pub(super) at_least: Duration,
    /// The length of each output, if such outputs have already been decompressed and found correct.
    ///
    /// Decompressing every output would cost more than some engines do: only outputs of unknown or different length are
    /// checked in full.
    pub(super) known: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum Work {
    /// `piece`: the number of bytes per call.
    Deflate { level: u8, piece: usize },
    /// The files that `Keep` left in `directory`.
    Inflate { directory: PathBuf },
    /// Stores the compressed corpus in `directory`.
    Keep { level: u8, directory: PathBuf },
}

/// A line of the worker's output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Reply {
    Done(Done),
    /// What went wrong, and with which file.
    Failed(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Done {
    pub(super) cpu: Duration,
    pub(super) elapsed: Duration,
    pub(super) files: Vec<Timed>,
}

/// One file, over all passes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Timed {
    pub(super) name: String,
    pub(super) passes: u64,
    /// Uncompressed, counted once.
    pub(super) content: u64,
    /// Compressed, over all passes.
    pub(super) compressed: u64,
    pub(super) elapsed: Duration,
}

/// Serves tasks until the input ends.
pub fn serve(engine: Engine, input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    let mut worker = Worker::new(engine).map_err(io::Error::other)?;
    for line in input.lines() {
        let task: Task = serde_json::from_str(&line?)?;
        let reply = match worker.perform(&task) {
            Ok(done) => Reply::Done(done),
            Err(why) => Reply::Failed(why),
        };
        writeln!(output, "{}", serde_json::to_string(&reply)?)?;
        output.flush()?;
    }
    Ok(())
}

struct Worker {
    compressor: Compressor,
    corpus: Corpus,
    output: Vec<u8>,
}

/// An engine with a name in the table.
#[derive(Clone, Copy, Debug)]
enum Compressor {
    Zlib(Zlib),
    Engine(EngineKind),
}

impl Worker {
    fn new(engine: Engine) -> Result<Self, String> {
        let compressor = match engine {
            Engine::Original | Engine::Hasten => Compressor::Zlib(Zlib::of_this_process()),
            Engine::ZlibNg => Compressor::Zlib(Zlib::ng()),
            Engine::Isal => Compressor::Engine(EngineKind::Isal),
            Engine::Libdeflate => Compressor::Engine(EngineKind::Libdeflate),
            Engine::ZlibRs => Compressor::Engine(EngineKind::ZlibRs),
        };
        let corpus = Corpus::of_this_machine();
        let largest = corpus.0.iter().map(|file| file.bytes.len()).max().unwrap_or_default();
        // Room for any engine's output of random bytes, and for a gzip wrapper.
        let output = vec![0; pool::bound(largest) + largest / 1000 + 64];
        Ok(Self { compressor, corpus, output })
    }

    fn perform(&mut self, task: &Task) -> Result<Done, String> {
        match &task.work {
            Work::Deflate { level, piece } => self.deflate(task, *level, *piece),
            Work::Inflate { directory } => self.inflate(task, directory),
            Work::Keep { level, directory } => self.keep(*level, directory),
        }
    }

    /// Passes over the corpus until enough time has been used.
    fn deflate(&mut self, task: &Task, level: u8, piece: usize) -> Result<Done, String> {
        let Self { compressor, corpus, output } = self;
        let run = |file: &File, output: &mut [u8]| {
            let length = compressor.compress(level, &file.bytes, piece, output);
            length.map_err(|why| format!("{}: {why}", file.name))
        };
        // Touching memory for the first time and making tables happens once per process, so off the clock.
        for file in corpus.0.iter().take(WARM_UP) {
            run(file, output)?;
        }
        let mut done = Done { files: corpus.0.iter().map(timed).collect(), ..Done::default() };
        let (started, cpu_before) = (Instant::now(), cpu::of_this_thread());
        loop {
            for (index, file) in corpus.0.iter().enumerate() {
                let before = Instant::now();
                let length = run(file, output)?;
                let timed = &mut done.files[index];
                timed.elapsed += before.elapsed();
                timed.compressed += length as u64;
                timed.passes += 1;
                if task.known.get(index) != Some(&(length as u64)) {
                    decompresses_to(file, &output[..length])?;
                }
            }
            done.cpu = cpu::of_this_thread().saturating_sub(cpu_before);
            if done.cpu >= task.at_least {
                done.elapsed = started.elapsed();
                return Ok(done);
            }
        }
    }

    fn inflate(&mut self, task: &Task, directory: &Path) -> Result<Done, String> {
        let Self { compressor, corpus, output, .. } = self;
        let read = |index| fs::read(kept(directory, index)).map_err(|error| error.to_string());
        let compressed = (0..corpus.0.len()).map(read).collect::<Result<Vec<_>, _>>()?;
        let mut done = Done { files: corpus.0.iter().map(timed).collect(), ..Done::default() };
        // A pass that is not timed compares every byte.
        for (file, compressed) in corpus.0.iter().zip(&compressed) {
            let length = compressor.decompress(compressed, output)?;
            if output[..length] != file.bytes {
                return Err(format!("{}: it decompresses to something else", file.name));
            }
        }
        let (started, cpu_before) = (Instant::now(), cpu::of_this_thread());
        loop {
            for (timed, compressed) in done.files.iter_mut().zip(&compressed) {
                let before = Instant::now();
                compressor.decompress(compressed, output)?;
                timed.elapsed += before.elapsed();
                timed.compressed += compressed.len() as u64;
                timed.passes += 1;
            }
            done.cpu = cpu::of_this_thread().saturating_sub(cpu_before);
            if done.cpu >= task.at_least {
                done.elapsed = started.elapsed();
                return Ok(done);
            }
        }
    }

    fn keep(&mut self, level: u8, directory: &Path) -> Result<Done, String> {
        for (index, file) in self.corpus.0.iter().enumerate() {
            let length = self.compressor.compress(level, &file.bytes, usize::MAX, &mut self.output)?;
            fs::write(kept(directory, index), &self.output[..length]).map_err(|error| error.to_string())?;
        }
        Ok(Done::default())
    }
}

/// Checks with a decoder that shares no code with any engine.
fn decompresses_to(file: &File, output: &[u8]) -> Result<(), String> {
    let mut content = Vec::with_capacity(file.bytes.len());
    let mut decoder = GzDecoder::new(output);
    let read = decoder.read_to_end(&mut content);
    if read.is_ok() && content == file.bytes && decoder.into_inner().is_empty() {
        Ok(())
    } else {
        Err(format!("{}: the output does not decompress to the file", file.name))
    }
}

fn timed(file: &File) -> Timed {
    Timed { name: file.name.clone(), content: file.bytes.len() as u64, ..Timed::default() }
}

fn kept(directory: &Path, index: usize) -> PathBuf {
    directory.join(format!("{index}.gz"))
}

impl Compressor {
    /// Makes a gzip stream of `input`; returns its length.
    fn compress(self, level: u8, input: &[u8], piece: usize, output: &mut [u8]) -> Result<usize, String> {
        match self {
            Self::Zlib(zlib) => zlib.compress(level, input, piece, output).map_err(|error| error.to_string()),
            Self::Engine(kind) => {
                gzip(kind, level, input, output).ok_or_else(|| format!("{kind} could not compress it"))
            }
        }
    }

    fn decompress(self, input: &[u8], output: &mut [u8]) -> Result<usize, String> {
        match self {
            Self::Zlib(zlib) => zlib.decompress(input, output).map_err(|error| error.to_string()),
            Self::Engine(kind) => Err(format!("{kind} is only asked to compress")),
        }
    }
}

/// One call of an engine, with the checksum and wrapper that the others produce, too.
fn gzip(kind: EngineKind, level: u8, input: &[u8], output: &mut [u8]) -> Option<usize> {
    const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    let settings = Settings { level, ..Settings::default() };
    let chunk = Chunk { before: Bits::NONE, history: &[], input, last: true };
    output[..HEADER.len()].copy_from_slice(&HEADER);
    let written = pool::compress(kind, &settings, &chunk, &mut output[HEADER.len()..])?;
    let end = HEADER.len() + written.bytes;
    let length = u32::try_from(input.len()).ok()?;
    let trailer = [checksum::crc32(0, input).to_le_bytes(), length.to_le_bytes()].concat();
    output.get_mut(end..end + trailer.len())?.copy_from_slice(&trailer);
    Some(end + trailer.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replies(engine: Engine, tasks: &[Task]) -> Vec<Reply> {
        let lines: String = tasks.iter().map(|task| serde_json::to_string(task).unwrap() + "\n").collect();
        let mut output = Vec::new();
        serve(engine, lines.as_bytes(), &mut output).unwrap();
        output
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect()
    }

    fn task(work: Work) -> Task {
        Task { work, at_least: Duration::ZERO, known: Vec::new() }
    }

    #[test]
    fn every_engine_compresses_the_corpus_and_it_is_right() {
        for engine in Engine::ALL {
            let tasks = [Work::Deflate { level: 1, piece: usize::MAX }].map(task);
            let replies = replies(engine, &tasks);
            let [Reply::Done(done)] = &replies[..] else { panic!("{engine}: {replies:?}") };
            assert!(done.files.iter().all(|file| file.passes == 1));
            let (content, compressed) = totals(done);
            assert!(
                compressed * 2 < content && compressed * 8 > content,
                "{engine}: {content} to {compressed}"
            );
        }
    }

    #[test]
    fn what_one_keeps_another_decompresses() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().to_owned();
        replies(Engine::Original, &[task(Work::Keep { level: 6, directory: directory.clone() })]);
        for engine in [Engine::Original, Engine::ZlibNg] {
            let replies = replies(engine, &[task(Work::Inflate { directory: directory.clone() })]);
            assert!(
                matches!(&replies[..], [Reply::Done(done)] if done.files[0].passes == 1),
                "{engine}: {replies:?}"
            );
        }
        fs::write(kept(&directory, 3), b"no gzip at all").unwrap();
        let replies = replies(Engine::ZlibNg, &[task(Work::Inflate { directory })]);
        assert!(matches!(&replies[..], [Reply::Failed(why)] if why.contains("-3")), "{replies:?}");
    }

    #[test]
    fn pieces_give_the_same_content() {
        let tasks = [Work::Deflate { level: 6, piece: 5000 }, Work::Deflate { level: 6, piece: usize::MAX }];
        let replies = replies(Engine::Original, &tasks.map(task));
        assert!(replies.iter().all(|reply| matches!(reply, Reply::Done(_))), "{replies:?}");
    }

    #[test]
    fn what_does_not_decompress_to_its_file_is_noticed() {
        let file = File { name: "text".to_owned(), bytes: b"text, text, text".to_vec() };
        let mut output = [0; 100];
        let length = gzip(EngineKind::Libdeflate, 6, &file.bytes, &mut output).unwrap();
        decompresses_to(&file, &output[..length]).unwrap();
        assert!(decompresses_to(&file, &output[..=length]).is_err(), "trailing byte");
        output[length - 6] ^= 1;
        assert!(decompresses_to(&file, &output[..length]).is_err(), "wrong checksum");
    }

    fn totals(done: &Done) -> (u64, u64) {
        let sum = |field: fn(&Timed) -> u64| done.files.iter().map(field).sum();
        (sum(|file| file.content), sum(|file| file.compressed))
    }
}
