//! The length of the output: the claims of README.md and docs/performance.md, over files that were not used for tuning.

mod bodies;

use std::fs::{self, File};
use std::io::{Seek, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use hasten_bench::gzip::corpus::Corpus;
use hasten_tests::effort::effort;
use hasten_tests::program::{Library, Program};
use hasten_tests::tools;

use bodies::Body;

/// A body may grow by 3 %, or by this for each separately compressed part.
const PART: usize = 20;
/// The same if another window or less memory splits the parts further.
const PART_IN_PIECES: usize = 50;
/// How much is compressed at a time with default parameters.
const CHUNK: usize = 200_000;

/// The arguments of `deflateInit2`, how much is passed at a time, and after how much there is a flush.
#[derive(Clone, Copy, Debug)]
struct Call {
    level: u8,
    strategy: u8,
    window: u8,
    memory: u8,
    piece: usize,
    flush: usize,
}

const DEFAULT: Call = Call { level: 6, strategy: 0, window: 15, memory: 8, piece: 8192, flush: 0 };

/// The lengths of each body for each call: ours, and the original's.
fn lengths(bodies: &[Body], calls: impl Fn(usize) -> Vec<Call>) -> Vec<(usize, Call, usize, usize)> {
    let directory = tempfile::tempdir().expect("a directory");
    let mut requests = tempfile::tempfile().expect("a file for requests");
    let mut asked = Vec::new();
    for (index, body) in bodies.iter().enumerate() {
        let path = directory.path().join(index.to_string());
        fs::write(&path, &body.bytes).expect("room for a body");
        // Neighbours are alike: a third each has every level on every kind of body.
        for call in calls(index).into_iter().skip(effort(index % 3, 0)).step_by(effort(3, 1)) {
            request(&mut requests, &path, call);
            asked.push((index, call));
        }
    }
    requests.rewind().expect("a file that can be read again");
    let mut command = Command::new(Program::using_zlib("deflate_sizes").path());
    Library::Gzip.preload(&mut command, &[]);
    let output = String::from_utf8(tools::run(command.stdin(Stdio::from(requests))).stdout).expect("text");
    let number = |word: &str| word.parse::<usize>().expect("a number");
    let answers: Vec<_> = output.lines().filter_map(|line| line.split_once(' ')).collect();
    assert_eq!(answers.len(), asked.len(), "{output}");
    let both = asked.into_iter().zip(answers);
    both.map(|((body, call), (ours, theirs))| (body, call, number(ours), number(theirs))).collect()
}

fn request(requests: &mut File, path: &Path, call: Call) {
    let Call { level, strategy, window, memory, piece, flush } = call;
    writeln!(requests, "{} {level} {strategy} {window} {memory} {piece} {flush}", path.display())
        .expect("room for a request");
}

/// Fails for every body that grew by more than it may, and if the total grew by more than 1 %.
fn hold(
    bodies: &[Body],
    percent: impl Fn(&Body, Call) -> usize,
    part: usize,
    calls: impl Fn(usize) -> Vec<Call>,
) {
    let results = lengths(bodies, calls);
    let mut grown = Vec::new();
    for (body, call, ours, theirs) in &results {
        let body = &bodies[*body];
        let parts = 1 + body.bytes.len().checked_div(call.flush).unwrap_or(body.bytes.len() / CHUNK);
        if *ours > theirs * (100 + percent(body, *call)) / 100 && *ours > theirs + parts * part {
            grown.push(format!("{}: {ours} bytes, not {theirs}, {call:?}", body.name));
        }
    }
    assert!(grown.is_empty(), "{} of {}:\n{}", grown.len(), results.len(), grown.join("\n"));
    let (ours, theirs) = results.iter().fold((0, 0), |sum, row| (sum.0 + row.2, sum.1 + row.3));
    assert!(ours <= theirs / 100 * 101, "in sum {ours} bytes, not {theirs}");
}

fn levels() -> Vec<Call> {
    (1..=9).map(|level| Call { level, ..DEFAULT }).collect()
}

/// What the levels were tuned on.
#[test]
fn what_servers_send() {
    let corpus = Corpus::of_this_machine().0.into_iter();
    let bodies: Vec<Body> = corpus.map(|file| Body { name: file.name, bytes: file.bytes }).collect();
    hold(&bodies, |_, _| 3, PART, |_| levels());
}

#[test]
fn everything_else() {
    hold(&bodies::all(), |body, call| body.percent(call.level), PART, |_| levels());
}

/// In pieces and in one call, which takes another path through the library.
#[test]
fn numbers_that_count() {
    let ways = |piece: usize| levels().into_iter().map(move |call| Call { piece, ..call });
    hold(&bodies::counting(), |_, _| 3, PART, |_| ways(DEFAULT.piece).chain(ways(1 << 20)).collect());
}

#[test]
fn numbers_that_count_with_flushes() {
    let calls = |index: usize| {
        let flush = [4096, 8192, 20_000, 50_000][index % 4];
        levels().into_iter().map(move |call| Call { flush, ..call }).collect()
    };
    // A flush hands such a stream to zlib, whose lowest level finds less if it has not read everything itself.
    let percent =
        |body: &Body, call: Call| if body.name.starts_with("days") && call.level == 1 { 10 } else { 3 };
    hold(&bodies::counting(), percent, PART, calls);
}

/// Anything but the default strategy, or with hardly any memory, is left to the original.
#[test]
fn what_is_left_to_the_original() {
    let calls = |index: usize| {
        let strategies =
            (1..=4).flat_map(|strategy| [1, 6, 9].map(|level| Call { level, strategy, ..DEFAULT }));
        let window = 9 + index as u8 % 7;
        let memories =
            (1..=3).flat_map(move |memory| [1, 7].map(|level| Call { level, window, memory, ..DEFAULT }));
        strategies.chain(memories).collect()
    };
    let results = lengths(&bodies::all(), calls);
    for (body, call, ours, theirs) in results {
        assert_eq!(ours, theirs, "body {body}, {call:?}");
    }
}

#[test]
fn flushes() {
    let calls = |index: usize| {
        let flush = |level: u8| [4096, 8192, 20_000][(index + usize::from(level)) % 3];
        (1..=9).map(|level| Call { level, flush: flush(level), ..DEFAULT }).collect()
    };
    hold(&bodies::all(), |body, call| body.percent_flushed(call.level), PART, calls);
}

/// Another window or less memory: one part more is lost at the ends of blocks, which are not where the original's are.
#[test]
fn windows_and_memory() {
    let calls = |index: usize| {
        let call = |number: usize| Call {
            level: 1 + (index + number * 4) as u8 % 9,
            window: 9 + (index * 5 + number) as u8 % 7,
            memory: 4 + (index * 7 + number * 2) as u8 % 6,
            ..DEFAULT
        };
        (0..4).map(call).collect()
    };
    hold(&bodies::all(), |body, call| body.percent(call.level).max(12), PART_IN_PIECES, calls);
}
