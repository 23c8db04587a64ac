//! Reads back the advice of `hasten gc --json`: the options for Node.js, each checked, and nothing else from the file.
//!
//! The file may come from anywhere. Anything that is not on the short list of options below, with a value in its range,
//! makes the whole file an error.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The only schema so far.
const SCHEMA: u64 = 1;
/// Reports of very long traces are a few megabytes.
const MAX_BYTES: u64 = 64 << 20;
const MIB: u64 = 1 << 20;
/// V8 sizes the young generation as three semi-spaces.
const SEMI_SPACES: u64 = 3;

/// An option that advice may set.
struct Allowed {
    name: &'static str,
    /// MiB.
    range: (u64, u64),
    /// Options with which a user makes the same decision.
    same: &'static [&'static str],
}

const SEMI_SPACE: Allowed = Allowed {
    name: "--max-semi-space-size",
    range: (1, 512),
    same: &["--max-semi-space-size", "--max-heap-size"],
};
const OLD_SPACE: Allowed = Allowed {
    name: "--max-old-space-size",
    range: (16, 1 << 20),
    same: &["--max-old-space-size", "--max-old-space-size-percentage", "--max-heap-size"],
};
const ALLOWED: [&Allowed; 2] = [&SEMI_SPACE, &OLD_SPACE];

/// The result of reading one file's advice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GcAdvice {
    pub file: PathBuf,
    pub settings: Vec<Setting>,
    /// The titles of advice without options.
    pub remarks: Vec<String>,
}

/// One option, with the advice that it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Such as `--max-semi-space-size=32`.
    pub option: String,
    /// The title of the advice.
    pub because: String,
}

#[derive(Debug, Error)]
pub enum AdviceError {
    #[error("cannot read the advice in {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{} is no advice: it has more than {} MiB", path.display(), MAX_BYTES / MIB)]
    TooLarge { path: PathBuf },
    #[error("{} is not JSON as `hasten gc --json` writes it: {message}", path.display())]
    Syntax { path: PathBuf, message: String },
    #[error("{} has schema {schema}; this hasten reads schema {SCHEMA}", path.display())]
    Schema { path: PathBuf, schema: u64 },
    #[error("{}: the advice `{title}` wants `{option}`: {problem}", path.display())]
    Option { path: PathBuf, title: String, option: String, problem: String },
    #[error("{}: {option} does not fit: {problem}", path.display())]
    Memory { path: PathBuf, option: String, problem: String },
}

impl AdviceError {
    /// What to do about it.
    pub fn fix(&self) -> String {
        match self {
            Self::Read { .. } => {
                "write it with `hasten gc TRACE --json >FILE`, and check who may read it".into()
            }
            Self::TooLarge { .. } | Self::Syntax { .. } | Self::Schema { .. } => {
                "write it anew with `hasten gc TRACE --json >FILE`".into()
            }
            Self::Option { .. } => {
                let allowed: Vec<_> = ALLOWED.iter().map(|allowed| allowed.form()).collect();
                format!(
                    "advice may set {}; put anything else into NODE_OPTIONS yourself",
                    allowed.join(" and ")
                )
            }
            Self::Memory { .. } => {
                "make the advice for this limit: `hasten gc TRACE --memory-limit SIZE --json >FILE`".into()
            }
        }
    }
}

#[derive(Deserialize)]
struct Document {
    schema: u64,
    advice: Vec<Advice>,
}

#[derive(Deserialize)]
struct Advice {
    title: String,
    node_options: Vec<String>,
}

impl GcAdvice {
    /// Reads a file; `memory_limit` is the process's future limit, if known.
    pub fn read(path: &Path, memory_limit: Option<u64>) -> Result<Self, AdviceError> {
        let unreadable = |source| AdviceError::Read { path: path.to_owned(), source };
        let mut text = Vec::new();
        let file = File::open(path).map_err(unreadable)?;
        file.take(MAX_BYTES + 1).read_to_end(&mut text).map_err(unreadable)?;
        if text.len() as u64 > MAX_BYTES {
            return Err(AdviceError::TooLarge { path: path.to_owned() });
        }
        Self::parse(&text, path, memory_limit)
    }

    /// Reads advice from memory; `path` is only named in errors.
    pub fn parse(text: &[u8], path: &Path, memory_limit: Option<u64>) -> Result<Self, AdviceError> {
        let document: Document = serde_json::from_slice(text)
            .map_err(|error| AdviceError::Syntax { path: path.to_owned(), message: error.to_string() })?;
        if document.schema != SCHEMA {
            return Err(AdviceError::Schema { path: path.to_owned(), schema: document.schema });
        }
        let mut chosen = BTreeMap::new();
        let mut remarks = Vec::new();
        for Advice { title, node_options } in document.advice {
            if node_options.is_empty() {
                remarks.push(line(&title));
            }
            for option in node_options {
                let (at, value) = value(&option).map_err(|problem| AdviceError::Option {
                    path: path.to_owned(),
                    title: line(&title),
                    option: line(&option),
                    problem,
                })?;
                // Isolates may want different sizes; the process gets the largest.
                let largest = chosen.entry(at).or_insert_with(|| (value, line(&title)));
                if value > largest.0 {
                    *largest = (value, line(&title));
                }
            }
        }
        for (&at, (value, _)) in &chosen {
            fits(ALLOWED[at], *value, memory_limit, path)?;
        }
        let setting = |(at, (value, because)): (usize, (u64, String))| Setting {
            option: format!("{}={value}", ALLOWED[at].name),
            because,
        };
        Ok(Self { file: path.to_owned(), settings: chosen.into_iter().map(setting).collect(), remarks })
    }
}

impl Setting {
    /// Options with which a user makes the same decision as this one.
    pub(crate) fn same(&self) -> &'static [&'static str] {
        let name = self.option.split('=').next();
        ALLOWED.iter().find(|allowed| name == Some(allowed.name)).map_or(&[], |allowed| allowed.same)
    }
}

impl Allowed {
    fn form(&self) -> String {
        format!("{}=N ({} to {})", self.name, self.range.0, self.range.1)
    }
}

/// The option's position in the list, and its value.
fn value(option: &str) -> Result<(usize, u64), String> {
    let (name, text) = option.split_once('=').unwrap_or((option, ""));
    let at = ALLOWED.iter().position(|allowed| allowed.name == name);
    let at = at.ok_or("not an option that advice may set")?;
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let value = text.parse().ok().filter(|_| digits).ok_or("its value is not a number of MiB")?;
    let (least, most) = ALLOWED[at].range;
    if !(least..=most).contains(&value) {
        return Err(format!("its value is not between {least} and {most} MiB"));
    }
    Ok((at, value))
}

/// Rejects sizes for which the kernel would kill the process before V8 reaches its own limit.
fn fits(allowed: &Allowed, value: u64, memory_limit: Option<u64>, path: &Path) -> Result<(), AdviceError> {
    let Some(limit) = memory_limit else { return Ok(()) };
    let is_semi_space = allowed.name == SEMI_SPACE.name;
    let (needed, allowance) = if is_semi_space { (SEMI_SPACES * value, limit / 2) } else { (value, limit) };
    if needed * MIB <= allowance {
        return Ok(());
    }
    let limit = limit / MIB;
    let problem = if is_semi_space {
        format!("the young generation would take {needed} MiB, more than half of the {limit} MiB there are")
    } else {
        format!("there are {limit} MiB for the whole process")
    };
    Err(AdviceError::Memory { path: path.to_owned(), option: format!("{}={value}", allowed.name), problem })
}

/// Text from a foreign file, made fit for one line of a terminal.
fn line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect()
}
