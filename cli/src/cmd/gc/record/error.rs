//! Why a process cannot be recorded, and what to do about it.

use std::io;
use std::path::PathBuf;

use crate::denied;

#[derive(Debug, thiserror::Error)]
pub(super) enum RecordError {
    #[error("{}", denied::NO_PROC)]
    NoProc,
    #[error("there is no process {0}")]
    NoProcess(u32),
    #[error("process {pid} belongs to another user (uid {uid})")]
    OtherUser { pid: u32, uid: u32 },
    #[error("process {pid} is {program}, not Node.js")]
    NotNode { pid: u32, program: String },
    #[error("process {0} was started without hasten's plugin for Node.js")]
    NoPlugin(u32),
    #[error(
        "process {0} has no control channel: HASTEN_NODE_GC=0 switches it off, HASTEN_DISABLE the plugin"
    )]
    SwitchedOff(u32),
    #[error("process {0} has only just been started: its control channel opens after a second")]
    TooYoung(u32),
    #[error(
        "process {0} has hasten's plugin and has not opened its control channel yet: it is still loading, or busy in one \
         long step"
    )]
    Loading(u32),
    #[error(
        "process {pid} has not opened its control channel: its runtime folder {} cannot be trusted: {why}",
        folder.display()
    )]
    NoChannel { pid: u32, folder: PathBuf, why: String },
    #[error("the socket of process {pid} was opened by process {peer} of user {uid}: it is not believed")]
    Foreign { pid: u32, peer: i32, uid: u32 },
    #[error("process {0} does not answer: its event loop is busy, or the process is stopped")]
    Silent(u32),
    #[error("process {pid} refuses: {reason}")]
    Refused { pid: u32, reason: String },
    #[error("no CPU profile of process {pid}: {reason}")]
    NoProfile { pid: u32, reason: String },
    #[error("the plugin in process {0} is older than this command, and takes no CPU profiles")]
    OldPlugin(u32),
    #[error("process {pid} answers what hasten does not understand: {answer}")]
    Garbage { pid: u32, answer: String },
    #[error("the connection to process {pid} broke: {error}")]
    Connection { pid: u32, error: io::Error },
    #[error("process {0} ended before anything was recorded")]
    Ended(u32),
    #[error("no Node.js process of this user can be recorded")]
    NoneFound,
    #[error(
        "no Node.js process of this user can be recorded yet: hasten's plugin is in {}, and no control channel is open",
        processes(.0)
    )]
    NoneYet(Vec<u32>),
    #[error("cannot write {}: {error}", file.display())]
    Output { file: PathBuf, error: io::Error },
    #[error("standard output cannot be written to: {0}")]
    Stdout(io::Error),
    #[error("cannot read the recording {}: {error}", file.display())]
    Recording { file: PathBuf, error: io::Error },
    #[error("cannot watch for Ctrl-C: {0}")]
    Signals(io::Error),
}

impl RecordError {
    pub(super) fn fix(&self) -> String {
        match self {
            Self::NoProc => denied::MOUNT_PROC.to_owned(),
            Self::NoProcess(_) | Self::NotNode { .. } | Self::Foreign { .. } => {
                "`hasten gc record --list` lists the processes that can be recorded".to_owned()
            }
            Self::OtherUser { pid, uid } => format!("sudo -u '#{uid}' hasten gc record {pid}"),
            Self::NoPlugin(_) | Self::NoneFound => "start it with `hasten run -- node app.js`".to_owned(),
            Self::SwitchedOff(_) => "start it without HASTEN_NODE_GC=0 and HASTEN_DISABLE".to_owned(),
            // One of them says why not.
            Self::NoneYet(pids) => {
                let first = pids.first().copied().unwrap_or_default();
                format!(
                    "try again in a moment; `hasten gc record {first}` says what is wrong with process {first}"
                )
            }
            Self::TooYoung(pid) | Self::Silent(pid) | Self::Loading(pid) => {
                format!("try again in a moment: `hasten gc record {pid}`")
            }
            Self::NoChannel { .. } => {
                "start it with HASTEN_RUNTIME_DIR set to a folder of its user with mode 700 and a short name"
                    .to_owned()
            }
            Self::Refused { .. } => "wait until other recordings have ended".to_owned(),
            Self::NoProfile { pid, .. } => {
                format!(
                    "record its collections alone: `hasten gc record {pid}`; if a profile is under way, wait until it has ended"
                )
            }
            Self::OldPlugin(_) | Self::Garbage { .. } => {
                "start the process again with this version of hasten".to_owned()
            }
            Self::Connection { pid, .. } => format!("see whether process {pid} still runs, and try again"),
            Self::Ended(_) => {
                "`HASTEN_NODE_GC=record hasten run -- node app.js` records from the start".to_owned()
            }
            Self::Output { .. } => "name a file in a folder that you may write to with --out".to_owned(),
            Self::Stdout(_) => "check the file or the device behind it".to_owned(),
            Self::Recording { .. } => "see whether somebody has removed it, and record again".to_owned(),
            Self::Signals(_) => "try again".to_owned(),
        }
    }
}

fn processes(pids: &[u32]) -> String {
    let word = if pids.len() == 1 { "process" } else { "processes" };
    format!("{word} {}", pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))
}
