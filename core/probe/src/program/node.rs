//! A Node.js binary's account of itself. Only running it reveals how it was built, so it is asked: with an
//! empty environment, for a bounded time, and believed only if its answer has exactly the expected form.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Environment, Program, elf};

/// A start takes a twentieth of a second, but the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(10);
const MAX_ANSWER: u64 = 16 << 10;
/// MiB. What the heap may have beyond this old space is the young generation: three semi-spaces.
const OLD_SPACE: u64 = 256;
const SEMI_SPACES: u64 = 3;

/// Uses nothing newer than Node.js 18. The rates are the best of five, in GB/s.
const QUESTION: &str = r#"
    const variables = process.config.variables;
    const is = (name) => Boolean(Number(variables[name] ?? 0));
    const [from, to] = [Buffer.alloc(65536, 1), Buffer.alloc(65536)];
    const rate = (work) => {
        let best = 0;
        for (let round = 0; round < 5; round++) {
            const start = process.hrtime.bigint();
            for (let turn = 0; turn < 64; turn++) work();
            best = Math.max(best, 64 * 65536 / Number(process.hrtime.bigint() - start));
        }
        return best;
    };
    JSON.stringify({
        release: process.versions.node,
        v8: process.versions.v8,
        pointer_compression: is('v8_enable_pointer_compression'),
        short_builtin_calls: is('v8_enable_short_builtin_calls'),
        pgo: is('enable_pgo_use'),
        lto: is('enable_lto') || is('enable_thin_lto'),
        ignores_node_options: is('node_without_node_options'),
        compile_cache: typeof require('module').enableCompileCache === 'function',
        heap_limit_bytes: require('v8').getHeapStatistics().heap_size_limit,
        swap16_gb_s: rate(() => from.swap16()),
        swap32_gb_s: rate(() => from.swap32()),
        swap64_gb_s: rate(() => from.swap64()),
        copy_gb_s: rate(() => from.copy(to)),
    })
"#;

/// How a Node.js was built, and what it does on this machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeBuild {
    /// Such as `20.20.2`.
    pub release: String,
    pub v8: String,
    pub pointer_compression: bool,
    pub short_builtin_calls: bool,
    pub pgo: bool,
    pub lto: bool,
    pub ignores_node_options: bool,
    /// `module.enableCompileCache` exists.
    pub compile_cache: bool,
    /// V8's limit for all heaps of the process, by default and here.
    pub heap_limit_bytes: u64,
    /// The largest semi-space, by default and here.
    #[serde(default)]
    pub semi_space_bytes: u64,
    pub swap16_gb_s: f64,
    pub swap32_gb_s: f64,
    pub swap64_gb_s: f64,
    pub copy_gb_s: f64,
    /// Whether the file has been processed by BOLT.
    #[serde(default)]
    pub bolt: bool,
    /// Whether the file has kept the relocations that BOLT needs to move functions.
    #[serde(default)]
    pub relocations: bool,
}

#[derive(Debug, Error)]
pub enum AskError {
    #[error("it gains privileges at start, so it is not run only to be asked")]
    Privileged,
    #[error("it cannot be started: {0}")]
    Start(std::io::Error),
    #[error("it does not answer within {} seconds", PATIENCE.as_secs())]
    Timeout,
    #[error("it ends with {0} instead of an answer")]
    Failed(std::process::ExitStatus),
    #[error("its answer is not that of Node.js 18 or later: {0}")]
    Answer(String),
}

impl NodeBuild {
    /// Runs `program` twice to ask it.
    pub fn ask(program: &Program, environment: &Environment) -> Result<Self, AskError> {
        if program.privilege.secure_exec {
            return Err(AskError::Privileged);
        }
        let file = &program.executable;
        let answer = |options: &[&str]| answer(file, environment, options, PATIENCE);
        let mut build = Self::parse(&answer(&[])?)?;
        let limited = Self::parse(&answer(&[&format!("--max-old-space-size={OLD_SPACE}")])?)?;
        build.semi_space_bytes = limited.heap_limit_bytes.saturating_sub(OLD_SPACE << 20) / SEMI_SPACES;
        let section = |name| elf::has_section(file, name).unwrap_or(false);
        build.bolt = section(".note.bolt_info") || section(".bolt.org.text");
        build.relocations = section(".rela.text");
        Ok(build)
    }

    fn parse(answer: &[u8]) -> Result<Self, AskError> {
        let build: Self =
            serde_json::from_slice(answer).map_err(|error| AskError::Answer(error.to_string()))?;
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let (version, _) = build.release.split_once('-').unwrap_or((&build.release, ""));
        if version.split('.').count() != 3 || !version.split('.').all(digits) {
            return Err(AskError::Answer("its version is none".into()));
        }
        Ok(build)
    }

    /// Such as 20.
    pub fn major(&self) -> u32 {
        self.release.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0)
    }

    /// V8's limit for the old generation, by default and here.
    pub fn old_space_bytes(&self) -> u64 {
        self.heap_limit_bytes.saturating_sub(SEMI_SPACES * self.semi_space_bytes)
    }
}

fn answer(
    file: &Path,
    environment: &Environment,
    options: &[&str],
    patience: Duration,
) -> Result<Vec<u8>, AskError> {
    let mut command = Command::new(file);
    command.env_clear().current_dir("/").args(options).args(["-p", QUESTION]);
    command.envs(environment.library_path.iter().map(|path| ("LD_LIBRARY_PATH", path)));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(AskError::Start)?;
    let outcome = listen(&mut child, patience);
    // It may have ended already; then there is nothing to kill.
    let _ = child.kill();
    let _ = child.wait();
    outcome
}

/// The output of a child that ends successfully and in time.
fn listen(child: &mut Child, patience: Duration) -> Result<Vec<u8>, AskError> {
    let deadline = Instant::now() + patience;
    let Some(output) = child.stdout.take() else { return Err(AskError::Timeout) };
    let (sender, receiver) = mpsc::channel();
    // A thread, because the program may neither end nor say anything. The thread ends with the pipe.
    thread::spawn(move || {
        let mut text = Vec::new();
        let read = output.take(MAX_ANSWER + 1).read_to_end(&mut text);
        let _ = sender.send(read.map(|_| text));
    });
    let text = receiver.recv_timeout(patience).map_err(|_| AskError::Timeout)?.map_err(AskError::Start)?;
    if text.len() as u64 > MAX_ANSWER {
        return Err(AskError::Answer(format!("it has more than {MAX_ANSWER} bytes")));
    }
    loop {
        match child.try_wait().map_err(AskError::Start)? {
            Some(status) if status.success() => return Ok(text),
            Some(status) => return Err(AskError::Failed(status)),
            None if Instant::now() > deadline => return Err(AskError::Timeout),
            None => thread::sleep(Duration::from_millis(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = r#"{"release":"20.20.2","v8":"11.3","pointer_compression":false,"short_builtin_calls":true,
        "pgo":false,"lto":false,"ignores_node_options":false,"compile_cache":false,"heap_limit_bytes":4345298944,
        "swap16_gb_s":40.0,"swap32_gb_s":16.0,"swap64_gb_s":28.5,"copy_gb_s":44}"#;

    fn parse(text: &str) -> Result<NodeBuild, String> {
        NodeBuild::parse(text.as_bytes()).map_err(|error| error.to_string())
    }

    /// The outcome for a program that runs this script instead of answering.
    fn ask(script: &str, patience: Duration) -> Result<Vec<u8>, String> {
        let library_path = Some("/libraries".into());
        let environment = Environment { path: None, library_path };
        // Its question is then the shell's positional parameter.
        let answer = answer(Path::new("/bin/sh"), &environment, &["-c", script], patience);
        answer.map_err(|error| error.to_string())
    }

    #[test]
    fn an_answer_has_exactly_the_expected_form() {
        let build = parse(ANSWER).unwrap();
        assert_eq!((build.major(), build.short_builtin_calls, build.copy_gb_s), (20, true, 44.0));
        assert_eq!(parse(&ANSWER.replace("20.20.2", "27.0.0-nightly2026")).unwrap().major(), 27);
        for (wrong, with) in [
            ("\"pgo\":false", "\"pgo\":0"),
            ("\"pgo\":false,", ""),
            ("\"pgo\"", "\"pgo2\":1,\"pgo\""),
            ("20.20.2", "20"),
            ("20.20.2", "v20.20.2"),
            ("20.20.2", ""),
            ("44}", "44}}"),
        ] {
            let error = parse(&ANSWER.replace(wrong, with)).unwrap_err();
            assert!(error.starts_with("its answer is not that of Node.js"), "{with}: {error}");
        }
    }

    #[test]
    fn the_young_generation_is_what_the_old_one_leaves() {
        let mut build = parse(ANSWER).unwrap();
        build.semi_space_bytes = 16 << 20;
        assert_eq!(build.old_space_bytes(), 4096 << 20);
    }

    #[test]
    fn a_program_that_does_anything_else_is_reported() {
        let patience = Duration::from_secs(30);
        assert_eq!(ask("echo yes", patience).unwrap(), b"yes\n");
        assert_eq!(ask("exit 3", patience).unwrap_err(), "it ends with exit status: 3 instead of an answer");
        let endless = ask("exec yes", patience).unwrap_err();
        assert!(endless.contains("more than 16384 bytes"), "{endless}");
        let deaf = ask("exec sleep 60", Duration::from_millis(50)).unwrap_err();
        assert!(deaf.starts_with("it does not answer within"), "{deaf}");
        let holding = ask("exec 1>&-; exec sleep 60", Duration::from_millis(50)).unwrap_err();
        assert!(holding.starts_with("it does not answer within"), "{holding}");
    }

    #[test]
    fn nothing_of_the_environment_but_the_library_path_reaches_it() {
        let seen = ask("/usr/bin/env; pwd", Duration::from_secs(30)).unwrap();
        let seen = String::from_utf8(seen).unwrap();
        let mut names: Vec<_> =
            seen.lines().filter_map(|line| line.split_once('=').map(|(name, _)| name)).collect();
        // A shell adds these itself.
        names.retain(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name));
        assert_eq!(names, ["LD_LIBRARY_PATH"], "{seen}");
        assert!(seen.ends_with("/\n"), "{seen}");
    }
}
