use std::io;
use std::path::PathBuf;

/// Why a workload of Node.js cannot run.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    #[error("{}", no_node(wanted.as_deref()))]
    NoNode { wanted: Option<String> },
    #[error("{path} is not a Node.js program: {why}")]
    NotNode { path: PathBuf, why: String },
    #[error("npm is not installed")]
    NoNpm,
    #[error("{program} is not installed, which Ghost needs")]
    NoDatabase { program: &'static str },
    #[error("Ghost 6 does not start with Node.js {node}")]
    GhostVersion { node: String },
    #[error("cannot install {what}: {why}")]
    Install { what: String, why: String },
    #[error("cannot use the cache folder {path}: {source}")]
    Cache { path: PathBuf, source: io::Error },
    #[error("cannot start {program}: {source}")]
    Spawn { program: PathBuf, source: io::Error },
    #[error("{what} did not start: {why}\n{log}")]
    Start { what: String, why: String, log: String },
    #[error("the stock {what} does not answer as expected: {why}")]
    Answer { what: String, why: String },
    #[error("cannot watch a process: {0}")]
    Wait(io::Error),
    #[error("stopped before there was a result")]
    Stopped,
}

impl NodeError {
    /// What to do about it.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::NoNode { wanted: None } => {
                "install Node.js 18 or newer (`apt-get install nodejs npm` as root), or name one with --node PATH"
                    .to_owned()
            }
            Self::NoNode { wanted: Some(_) } | Self::NotNode { .. } => {
                "name the program itself: --node /path/to/bin/node".to_owned()
            }
            Self::NoNpm => "run `apt-get install npm` as root, or put the npm of your Node.js into PATH".to_owned(),
            Self::NoDatabase { .. } => {
                "run `apt-get install mariadb-server-core mariadb-client-core` as root, which starts no service; or leave \
                 Ghost out: --workload faas-startup,react-ssr,json-api,web-tooling"
                    .to_owned()
            }
            Self::GhostVersion { .. } => "name a release that it supports: --node 22 or --node 24".to_owned(),
            Self::Install { .. } => "check the network and npm's configuration, then run this again".to_owned(),
            Self::Cache { .. } => "name a folder that you may write to: HASTEN_CACHE_DIR=/path".to_owned(),
            Self::Spawn { program, .. } => format!("see whether `{} --version` works", program.display()),
            Self::Start { what, .. } => format!("the lines above are what {what} itself says"),
            Self::Answer { .. } => {
                "remove the workload's folder in ~/.cache/hasten/bench/node and run this again".to_owned()
            }
            Self::Wait(_) | Self::Stopped => "run this again".to_owned(),
        }
    }
}

fn no_node(wanted: Option<&str>) -> String {
    match wanted {
        None => "there is no `node` in PATH".to_owned(),
        Some(version) => {
            format!("there is no Node.js {version} in PATH or where version managers keep theirs")
        }
    }
}
