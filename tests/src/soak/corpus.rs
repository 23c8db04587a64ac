//! The bodies that servers deliver.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;

use super::random::Random;
use crate::bodies;

/// Lengths, and the percentage of requests for each.
const LENGTHS: [(usize, usize); 4] = [(1 << 10, 40), (10 << 10, 32), (100 << 10, 24), (1 << 20, 4)];

/// Files, and their expected contents.
pub struct Corpus {
    dir: TempDir,
    files: Vec<File>,
}

pub struct File {
    pub name: String,
    pub content: Vec<u8>,
}

impl Corpus {
    #[must_use]
    pub fn new() -> Self {
        // The workers of a server started by root run as another user.
        let mut builder = tempfile::Builder::new();
        let dir = builder.prefix("hasten-soak-").permissions(Permissions::from_mode(0o755)).tempdir();
        let dir = dir.expect("a directory for files");
        let files = LENGTHS.map(|(length, _)| {
            let file = File { name: format!("{length}.html"), content: bodies::page(length) };
            fs::write(dir.path().join(&file.name), &file.content).expect("a file of the site");
            file
        });
        Self { dir, files: files.into() }
    }

    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn choose(&self, random: &mut Random) -> &File {
        let mut left = random.below(100);
        let chosen = LENGTHS.iter().position(|(_, share)| {
            let is_here = left < *share;
            left = left.saturating_sub(*share);
            is_here
        });
        &self.files[chosen.unwrap_or(0)]
    }

    #[must_use]
    pub fn largest(&self) -> &File {
        &self.files[LENGTHS.len() - 1]
    }

    /// Changes one byte of every file: a server that delivers them now is wrong.
    pub fn corrupt(&self) {
        for File { name, content } in &self.files {
            let mut wrong = content.clone();
            wrong[content.len() / 2] ^= 1;
            fs::write(self.dir.path().join(name), wrong).expect("a file of the site");
        }
    }
}

impl Default for Corpus {
    fn default() -> Self {
        Self::new()
    }
}
