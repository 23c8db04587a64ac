//! What is compressed: files of the distribution, and generated ones for kinds that it lacks.
//!
//! The same packages give the same corpus, byte for byte: [`Corpus::describe`] has a checksum to compare.

pub(crate) mod generate;
mod prose;

use std::fs;
use std::path::Path;

use self::generate::Kind;

/// Larger files are cut to this size.
const LARGEST: usize = 1 << 20;

/// Files of packages that the build or the servers need anyway; missing ones are skipped.
const REAL: [(&str, &str); 12] = [
    ("text/gpl-3", "/usr/share/common-licenses/GPL-3"),
    ("text/nginx-copyright", "/usr/share/doc/nginx-common/copyright"),
    ("html/nginx-index", "/usr/share/nginx/html/index.html"),
    ("html/python-policy", "/usr/share/doc/python3/python-policy.html"),
    ("js/gitweb", "/usr/share/gitweb/static/gitweb.js"),
    ("js/searchindex", "/usr/share/doc/python3/searchindex.js"),
    ("css/gitweb", "/usr/share/gitweb/static/gitweb.css"),
    ("css/sphinx-basic", "/usr/share/doc/python3/_static/basic.css"),
    ("source/argparse.py", "/usr/lib/python3.11/argparse.py"),
    ("source/stdio.h", "/usr/include/stdio.h"),
    ("source/POSIX.pm", "/usr/lib/x86_64-linux-gnu/perl-base/POSIX.pm"),
    ("binary/libz", "/lib/x86_64-linux-gnu/libz.so.1"),
];

const GENERATED: [(Kind, usize); 17] = [
    (Kind::Html, 1 << 10),
    (Kind::Html, 10 << 10),
    (Kind::Html, 100 << 10),
    (Kind::Html, 1 << 20),
    (Kind::Json, 1 << 10),
    (Kind::Json, 40 << 10),
    (Kind::Json, 400 << 10),
    (Kind::Script, 8 << 10),
    (Kind::Script, 200 << 10),
    (Kind::Style, 4 << 10),
    (Kind::Style, 60 << 10),
    (Kind::Log, 16 << 10),
    (Kind::Log, 500 << 10),
    (Kind::Svg, 2 << 10),
    (Kind::Svg, 60 << 10),
    (Kind::Random, 16 << 10),
    (Kind::Random, 200 << 10),
];

/// A file to compress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub name: String,
    pub bytes: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corpus(pub Vec<File>);

impl Corpus {
    #[must_use]
    pub fn of_this_machine() -> Self {
        let real = REAL.iter().filter_map(|&(name, path)| read(name, Path::new(path)));
        let generated = GENERATED.iter().map(|&(kind, size)| File {
            name: format!("{}/{}", kind.as_str(), size_name(size)),
            bytes: generate::file(kind, size),
        });
        Self(real.chain(generated).collect())
    }

    /// Bytes of all files.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.0.iter().map(|file| file.bytes.len() as u64).sum()
    }

    /// How large it is and, for comparisons between machines, whether it is the same.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut checksum = flate2::Crc::new();
        self.0.iter().for_each(|file| checksum.update(&file.bytes));
        let (files, size) = (self.0.len(), self.size() as f64 / 1e6);
        format!("{files} files, {size:.1} MB, checksum {:08x}", checksum.sum())
    }
}

fn read(name: &str, path: &Path) -> Option<File> {
    let mut bytes = fs::read(path).ok().filter(|bytes| !bytes.is_empty())?;
    bytes.truncate(LARGEST);
    Some(File { name: name.to_owned(), bytes })
}

/// `1KB`, `100KB`, `1MB`.
pub(crate) fn size_name(size: usize) -> String {
    if size >= 1 << 20 { format!("{}MB", size >> 20) } else { format!("{}KB", size >> 10) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn compression(bytes: &[u8]) -> f64 {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::new(6));
        encoder.write_all(bytes).unwrap();
        bytes.len() as f64 / encoder.finish().unwrap().len() as f64
    }

    #[test]
    fn the_same_machine_gives_the_same_corpus() {
        assert_eq!(Corpus::of_this_machine(), Corpus::of_this_machine());
    }

    #[test]
    fn sizes_are_exact_and_span_what_servers_send() {
        let corpus = Corpus::of_this_machine();
        for ((kind, size), file) in GENERATED.iter().zip(&corpus.0[corpus.0.len() - GENERATED.len()..]) {
            assert_eq!(file.bytes.len(), *size, "{kind:?}");
        }
        assert!((3_000_000..8_000_000).contains(&corpus.size()), "{}", corpus.describe());
    }

    #[test]
    fn generated_files_compress_as_real_ones_do() {
        for (kind, range) in [
            (Kind::Html, 3.2..7.0),
            (Kind::Json, 3.0..9.0),
            (Kind::Script, 2.5..5.0),
            (Kind::Style, 3.0..8.0),
            (Kind::Log, 4.0..12.0),
            (Kind::Svg, 2.0..4.5),
            (Kind::Random, 0.9..1.01),
        ] {
            let compression = compression(&generate::file(kind, 100 << 10));
            assert!(range.contains(&compression), "{kind:?}: {compression:.2}");
        }
    }
}
