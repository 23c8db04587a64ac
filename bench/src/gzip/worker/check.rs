use std::collections::HashMap;
use std::io::Read;

use flate2::bufread::GzDecoder;

use super::Work;
use crate::gzip::corpus::File;

/// How long each file became, for outputs that were decompressed and found right.
///
/// Decompressing every output would cost more than many an engine; the first of each kind of work is checked in full, and
/// later ones whose length is another.
#[derive(Debug, Default)]
pub(super) struct Checked {
    lengths: HashMap<Work, Vec<usize>>,
}

impl Checked {
    pub(super) fn knows(&self, work: &Work) -> bool {
        self.lengths.contains_key(work)
    }

    /// Checks the first output of the next file.
    pub(super) fn first(&mut self, work: &Work, file: &File, output: &[u8]) -> Result<(), String> {
        decompresses_to(file, output)?;
        self.lengths.entry(work.clone()).or_default().push(output.len());
        Ok(())
    }

    /// Checks a later one.
    pub(super) fn again(&self, work: &Work, index: usize, file: &File, output: &[u8]) -> Result<(), String> {
        let known = self.lengths.get(work).and_then(|lengths| lengths.get(index));
        if known == Some(&output.len()) { Ok(()) } else { decompresses_to(file, output) }
    }
}

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
