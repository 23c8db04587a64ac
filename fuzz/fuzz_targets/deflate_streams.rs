//! zlib's deflate streams, fed and drained in any steps with any flush: what was flushed can be unpacked at once.

#![no_main]

use std::ptr::NonNull;

use flate2::{Decompress, FlushDecompress};
use hasten_deflate::engine::{Settings, Strategy};
use hasten_deflate::engines::Engines;
use hasten_deflate::header::Wrapper;
use hasten_deflate::store::Store;
use hasten_deflate::stream::{Deflate, Flush, Io, Outcome, Tally};
use libfuzzer_sys::fuzz_target;

static ENGINES: Engines = Engines::new();

/// What to do with a piece of input.
#[derive(arbitrary::Arbitrary, Debug)]
struct Act {
    piece: Vec<u8>,
    repeated: u8,
    flush: u8,
    room: u16,
}

fuzz_target!(|input: (Vec<Act>, [u8; 5])| {
    let (acts, choices) = input;
    let settings = Settings {
        level: choices[0] % 9 + 1,
        window_bits: 9 + choices[1] % 7,
        mem_level: choices[2] % 9 + 1,
        strategy: Strategy::from_number(i32::from(choices[3] % 8)).unwrap_or(Strategy::Default),
        tuning: None,
        narrow: None,
    };
    let mut memory = vec![0xa5_u8; Deflate::least_memory(&settings) + usize::from(choices[4]) * 512];
    let region = NonNull::new(memory.as_mut_ptr()).expect("a vector is somewhere");
    // SAFETY: `memory` outlives the stream and is not touched meanwhile.
    let store = unsafe { Store::new([(region, memory.len())]) };
    let mut stream = Stream {
        deflate: Deflate::new(settings, Wrapper::Raw, store, choices[4] % 2 == 0, &ENGINES),
        plain: Vec::new(),
        packed: Vec::new(),
        inflate: Decompress::new(false),
        unpacked: Vec::new(),
    };
    for act in &acts {
        let flush = Flush::from_number(i32::from(act.flush % 8)).filter(|flush| *flush != Flush::Finish);
        stream.write(
            &act.piece.repeat(usize::from(act.repeated) + 1),
            flush.unwrap_or(Flush::No),
            usize::from(act.room),
        );
    }
    stream.write(b"", Flush::Finish, 100);
    assert!(stream.deflate.has_ended() && stream.unpacked == stream.plain);
});

struct Stream {
    deflate: Deflate,
    plain: Vec<u8>,
    packed: Vec<u8>,
    inflate: Decompress,
    unpacked: Vec<u8>,
}

impl Stream {
    fn write(&mut self, piece: &[u8], flush: Flush, room: usize) {
        self.plain.extend_from_slice(piece);
        let mut input = piece;
        // With less room than a marker has, the next would follow whenever one just fits.
        let room = room.max(7);
        loop {
            let mut out = vec![0; room];
            let mut io = Io { input, output: &mut out, header: None, complaint: None };
            let outcome = self.deflate.deflate(&mut io, flush, &mut Tally::default());
            let (behind, left) = (io.input.len(), io.output.len());
            input = &input[input.len() - behind..];
            self.packed.extend_from_slice(&out[..room - left]);
            assert_ne!(outcome, Outcome::StreamError);
            if left > 0 || outcome != Outcome::Ok {
                break;
            }
        }
        assert!(input.is_empty());
        self.unpack();
        let is_whole = matches!(flush, Flush::Sync | Flush::Full | Flush::Finish);
        assert!(self.plain.starts_with(&self.unpacked) && (!is_whole || self.unpacked == self.plain));
    }

    fn unpack(&mut self) {
        loop {
            let taken = usize::try_from(self.inflate.total_in()).expect("bytes in memory");
            let before = (taken, self.unpacked.len());
            self.unpacked.reserve(64 << 10);
            self.inflate
                .decompress_vec(&self.packed[taken..], &mut self.unpacked, FlushDecompress::Sync)
                .expect("a good stream");
            if before == (usize::try_from(self.inflate.total_in()).expect("as above"), self.unpacked.len()) {
                break;
            }
        }
    }
}
