//! What can be wrong with a core file.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum CoreError {
    #[error("cannot read {}: {error}", path.display())]
    Read { path: PathBuf, error: std::io::Error },
    #[error("{} is no core file: {why}", path.display())]
    NoCore { path: PathBuf, why: &'static str },
    #[error("{} is packed, and cannot be unpacked: {why}", path.display())]
    Packed { path: PathBuf, why: String },
    #[error("{} is packed, and there is no room to unpack it in {}", path.display(), folder.display())]
    NoRoom { path: PathBuf, folder: PathBuf },
    #[error("the program that died cannot be found: {why}")]
    NoBinary { why: String },
    #[error("{} is not the program that died: {why}", path.display())]
    OtherBinary { path: PathBuf, why: String },
    #[error("{} carries no description of V8's objects (v8dbg_ symbols)", path.display())]
    NoSymbols { path: PathBuf },
    #[error("this build of Node.js {node} compresses pointers, which is not supported")]
    Compressed { node: String },
    #[error(
        "the core file is not of a Node.js program: it had {program} loaded, and nothing by the name of node"
    )]
    NotNode { program: String },
    #[error("no page of V8's heap is in the core file")]
    NoHeap,
    #[error("the heap has more than {limit} {what}, the most that can be counted")]
    TooLarge { what: &'static str, limit: u32 },
    #[error("cannot write {}: {error}", path.display())]
    Write { path: PathBuf, error: std::io::Error },
}

impl CoreError {
    /// What to do about it.
    #[must_use]
    pub fn fix(&self) -> &'static str {
        match self {
            Self::Read { .. } => {
                "check the name and the permissions: core files belong to the program's user"
            }
            Self::NoCore { .. } => {
                "pass a core file of a 64-bit x86 Linux program, as the kernel or gcore writes it"
            }
            Self::Packed { .. } => "unpack it with zstd -d or gunzip, or copy it again",
            Self::NoRoom { .. } => "set TMPDIR to a folder on a disk with more room",
            Self::NoBinary { .. } => "pass the node program that died: --node PATH",
            Self::OtherBinary { .. } => "pass the very file that died, of the same build: --node PATH",
            Self::NoSymbols { .. } => "pass an unstripped build of the same release: --node PATH",
            Self::Compressed { .. } => "use a stock build",
            Self::NotNode { .. } => {
                "for other programs use gdb PROGRAM CORE; a Node.js under another name: --node PATH"
            }
            Self::NoHeap => {
                "check /proc/PID/coredump_filter: 0x33 keeps what is needed; of a plain fork V8 keeps its heap back"
            }
            Self::TooLarge { .. } => "take a core file earlier, when the heap is smaller",
            Self::Write { .. } => "check the folder, the space on the disk and the permissions",
        }
    }
}
