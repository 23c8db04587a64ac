//! A small application, and both ways to start it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use hasten_tests::{product, tools};
use serde_json::Value;

/// The releases that scripts/nodes.sh installs.
pub(crate) const RELEASES: [u32; 5] = [18, 20, 22, 24, 26];

/// Modules of every sort that the cache supports, so that a start can benefit.
const FILES: [(&str, &str); 7] = [
    (
        "package.json",
        r#"{ "name": "app", "version": "1.2.3", "scripts": { "start": "node app.js from npm" } }"#,
    ),
    (
        "app.js",
        "#!/usr/bin/env node\nconst { greet } = require('./lib');\nconsole.log(greet(), ...process.argv.slice(2));\n",
    ),
    (
        "lib/index.js",
        "const { word } = require('greeting');\nconst { name } = require('../package.json');\nexports.greet = () => `${word}, ${name}`;\n",
    ),
    (
        "node_modules/greeting/package.json",
        r#"{ "name": "greeting", "version": "1.0.0", "main": "main.cjs", "bin": "cli.js" }"#,
    ),
    ("node_modules/greeting/main.cjs", "exports.word = require('./words')();\n"),
    (
        "node_modules/greeting/cli.js",
        "#!/usr/bin/env node\nconsole.log(require('./main.cjs').word, 'from npx');\n",
    ),
    (
        "fail.js",
        "const { greet } = require('./lib');\nfunction fail() {\n  throw new Error(greet());\n}\nfail();\n",
    ),
];

const WORDS: usize = 24;
/// Recording is paid for with what starts have earned: the first has nothing yet, and a later one may complete the
/// cache.
const STARTS: usize = 4;
/// Microseconds, as if after many starts, and the time of one without a cache.
const CREDIT: &str = "400000 30000 0 ";

pub(crate) struct App {
    scratch: tempfile::TempDir,
    node: PathBuf,
}

impl App {
    /// With the machine's own Node.js.
    pub(crate) fn new() -> Self {
        Self::with(tools::tool("node", "nodejs"))
    }

    pub(crate) fn on(release: u32) -> Self {
        let node = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("../.deps/nodes/node_modules/node{release}/bin/node"))
            .canonicalize();
        Self::with(node.unwrap_or_else(|_| panic!("Node.js {release} is missing: run scripts/nodes.sh")))
    }

    fn with(node: PathBuf) -> Self {
        let scratch = tempfile::Builder::new().prefix("hasten node ").tempdir().unwrap();
        product::require_node_plugin();
        let app = Self { scratch, node };
        for (name, text) in FILES {
            app.write(name, text);
        }
        app.add_words();
        for script in ["app.js", "node_modules/greeting/cli.js"] {
            fs::set_permissions(app.path(script), PermissionsExt::from_mode(0o755)).unwrap();
        }
        fs::create_dir(app.path("node_modules/.bin")).unwrap();
        let bin = app.path("node_modules/.bin/greeting");
        std::os::unix::fs::symlink("../greeting/cli.js", bin).unwrap();
        for folder in ["home", "runtime"] {
            fs::create_dir(app.scratch.path().join(folder)).unwrap();
        }
        app
    }

    /// Enough modules for a cache of them to be worth recording.
    fn add_words(&self) {
        let word = |at: usize| {
            let functions = (0..40).map(|n| format!("function unused{n}(a, b) {{ return a * {n} + b; }}\n"));
            format!("{}module.exports = {};\n", functions.collect::<String>(), ["'good'", "'day'"][at % 2])
        };
        let folder = "node_modules/greeting/words";
        for at in 0..WORDS {
            self.write(&format!("{folder}/{at}.js"), &word(at));
        }
        let all: Vec<_> = (0..WORDS).map(|at| format!("require('./{at}')")).collect();
        let index = format!("module.exports = () => [{}].slice(0, 2).join(' ');\n", all.join(", "));
        self.write(&format!("{folder}/index.js"), &index);
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join("app").join(name)
    }

    pub(crate) fn node(&self) -> &str {
        self.node.to_str().unwrap()
    }

    /// A command without hasten.
    pub(crate) fn stock(&self, words: &[&str]) -> Command {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        self.settle(command)
    }

    /// The same behind `hasten run`.
    pub(crate) fn hasten(&self, words: &[&str]) -> Command {
        let mut command = Command::new(product::hasten());
        command.args(["run", "--quiet", "--only", "node", "--"]).args(words);
        self.settle(command)
    }

    /// Nothing of the caller's environment except `PATH`, so that both sides have the same.
    fn settle(&self, mut command: Command) -> Command {
        let place = |name: &str| self.scratch.path().join(name);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let directories =
            [self.node.parent().unwrap().to_owned()].into_iter().chain(std::env::split_paths(&path));
        command
            .env_clear()
            .env("PATH", std::env::join_paths(directories).unwrap())
            .env("HOME", place("home"))
            .env("HASTEN_CACHE_DIR", place("cache"))
            .env("HASTEN_RUNTIME_DIR", place("runtime"))
            .env("HASTEN_NODE_STATS", place("stats"))
            .env("npm_config_update_notifier", "false")
            .env("npm_config_offline", "true")
            .current_dir(self.path(""))
            .stdin(Stdio::null());
        command
    }

    /// The plugin's statistics, an object for each process that ended since the last call.
    pub(crate) fn stats(&self) -> Vec<Value> {
        let file = self.scratch.path().join("stats");
        let text = fs::read_to_string(&file).unwrap_or_default();
        let _ = fs::remove_file(&file);
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
            .collect()
    }

    /// How many modules came from the cache, in all processes since the last call.
    pub(crate) fn hits(&self) -> u64 {
        self.stats().iter().map(|process| process["hits"].as_u64().unwrap_or(0)).sum()
    }

    /// Runs it without hasten, with a cold cache and with a warm one: all the same, and the last from the cache.
    pub(crate) fn same_and_served(&self, words: &[&str]) -> String {
        let stock = outcome(self.stock(words));
        self.stats();
        for start in 0..STARTS {
            assert_eq!(
                outcome(self.hasten(words)),
                stock,
                "start {start} of {words:?} (left) and stock differ"
            );
            if self.hits() > 0 {
                return stock.1;
            }
            self.give_credit();
        }
        panic!("nothing of {words:?} came from the cache");
    }

    /// Lets the next start record what it needs to.
    pub(crate) fn give_credit(&self) {
        let folder = self.scratch.path().join("cache/node");
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let file = entry.unwrap().path();
            if file.extension().is_some_and(|extension| extension == "credit") {
                fs::write(file, CREDIT).unwrap();
            }
        }
    }
}

/// Exit status, output and messages.
pub(crate) type Outcome = (Option<i32>, String, String);

pub(crate) fn outcome(mut command: Command) -> Outcome {
    let Output { status, stdout, stderr } =
        command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (status.code(), text(stdout), without_loaders(&text(stderr)))
}

/// Messages without the stack frames of module loading: Node's own, and the plugin's in their place.
fn without_loaders(messages: &str) -> String {
    let of_a_loader = |line: &str| {
        let line = line.trim_start();
        let is_ours = ["/node/register.js:", "/node/serve.js:"].iter().any(|file| line.contains(file));
        line.starts_with("at ") && (line.contains("node:internal/") || is_ours)
    };
    messages.split_inclusive('\n').filter(|line| !of_a_loader(line)).collect()
}
