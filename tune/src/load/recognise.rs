//! Which tool a command line runs, by the program's name, even behind programs that only start others.

use std::path::{Path, PathBuf};

use super::command::is_assignment;
use super::tools::{ab, autocannon, db_bench, h2load, k6, memtier, oha, redis_benchmark, wrk};
use super::{LoadResult, Printed};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    Wrk,
    Ab,
    H2load,
    Autocannon,
    Oha,
    K6,
    RedisBenchmark,
    Memtier,
    DbBench,
}

/// Programs that run the program named in their arguments.
pub(super) const STARTERS: [&str; 19] = [
    "env", "taskset", "timeout", "npx", "bunx", "pnpx", "node", "nice", "ionice", "chrt", "numactl",
    "stdbuf", "setsid", "nohup", "time", "sudo", "doas", "sh", "bash",
];

impl Tool {
    const ALL: [(&'static str, Self); 12] = [
        ("wrk", Self::Wrk),
        ("wrk2", Self::Wrk),
        ("ab", Self::Ab),
        ("h2load", Self::H2load),
        ("autocannon", Self::Autocannon),
        ("oha", Self::Oha),
        ("k6", Self::K6),
        ("redis-benchmark", Self::RedisBenchmark),
        ("valkey-benchmark", Self::RedisBenchmark),
        ("memtier_benchmark", Self::Memtier),
        ("memtier-benchmark", Self::Memtier),
        ("db_bench", Self::DbBench),
    ];

    pub(super) fn of(words: &[String]) -> Option<Self> {
        Self::position(words).map(|(_, tool)| tool)
    }

    /// The position of the tool in the command line.
    pub(super) fn position(words: &[String]) -> Option<(usize, Self)> {
        let (at, first) = words.iter().enumerate().find(|(_, word)| !is_assignment(word))?;
        if let Some(tool) = Self::by_name(first) {
            return Some((at, tool));
        }
        if !STARTERS.contains(&program(first)) {
            return None;
        }
        let named = words.iter().enumerate().skip(at + 1);
        named.flat_map(|(at, word)| Some((at, Self::by_name(word)?))).next()
    }

    fn by_name(word: &str) -> Option<Self> {
        let name = program(word);
        Self::ALL.iter().find(|(known, _)| *known == name).map(|&(_, tool)| tool)
    }

    pub(super) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, tool)| *tool == self).map_or("", |&(name, _)| name)
    }

    pub(super) fn speaks_http(self) -> bool {
        !matches!(self, Self::RedisBenchmark | Self::Memtier | Self::DbBench)
    }

    /// How to install it.
    pub(super) fn source(self) -> &'static str {
        match self {
            Self::Wrk => "run `apt-get install wrk` as root",
            Self::Ab => "run `apt-get install apache2-utils` as root",
            Self::H2load => "run `apt-get install nghttp2-client` as root",
            Self::Autocannon => "run `npm install --global autocannon`, or write `npx autocannon`",
            Self::Oha => "run `cargo install oha`",
            Self::K6 => "run `go install go.k6.io/k6@latest`",
            Self::RedisBenchmark => "run `apt-get install redis-tools` as root",
            Self::Memtier => {
                "build it from https://github.com/redis/memtier_benchmark; Debian has no package"
            }
            Self::DbBench => "run `apt-get install rocksdb-tools` as root",
        }
    }

    /// How to make it run longer.
    pub(super) fn longer(self) -> &'static str {
        match self {
            Self::Wrk => "a larger -d, such as wrk -d10s",
            Self::Ab => "a larger -n, or -t 10 -n 10000000",
            Self::H2load => "a larger -n, or -D 10",
            Self::Autocannon => "a larger -d, such as autocannon -d 10",
            Self::Oha => "a larger -z, such as oha -z 10s",
            Self::K6 => "a larger --duration",
            Self::RedisBenchmark => "a larger -n",
            Self::Memtier => "a larger -n, or --test-time=10",
            Self::DbBench => "a larger --num, or --duration=10",
        }
    }

    /// How long it was told to run; unknown if it was given a number of requests.
    pub(super) fn seconds(self, words: &[String]) -> Option<f64> {
        let options: &[&str] = match self {
            Self::Wrk | Self::Autocannon => &["-d", "--duration"],
            Self::Oha => &["-z"],
            Self::K6 => &["-d", "--duration"],
            Self::H2load => &["-D", "--duration"],
            _ => return None,
        };
        let joined = || {
            words.iter().rev().find_map(|word| word.strip_prefix(options[0]).filter(|text| !text.is_empty()))
        };
        seconds(option(words, options).or_else(joined)?)
    }

    pub(super) fn parse(self, words: &[String], printed: &Printed) -> Option<LoadResult> {
        match self {
            Self::Wrk => wrk::parse(printed),
            Self::Ab => ab::parse(printed),
            Self::H2load => h2load::parse(printed),
            Self::Autocannon => autocannon::parse(printed),
            Self::Oha => oha::parse(printed),
            Self::K6 => k6::parse(printed),
            Self::RedisBenchmark => redis_benchmark::parse(words, printed),
            Self::Memtier => memtier::parse(printed),
            Self::DbBench => db_bench::parse(printed),
        }
    }

    /// Where the user told the tool to write what it would otherwise print.
    pub(super) fn output_file(self, words: &[String]) -> Option<PathBuf> {
        let options: &[&str] = match self {
            Self::K6 => &["--summary-export"],
            Self::Memtier => &["--json-out-file", "--out-file", "-o"],
            Self::Oha => &["--output", "-o"],
            _ => return None,
        };
        option(words, options).map(PathBuf::from)
    }
}

/// `10`, `10s`, `2m`, `1h`; `None` for any other notation of a tool.
fn seconds(text: &str) -> Option<f64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let factor = match &text[digits..] {
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Some(text[..digits].parse::<f64>().ok()? * factor)
}

/// The value of the last of these options.
pub(super) fn option<'a>(words: &'a [String], names: &[&str]) -> Option<&'a str> {
    let value = |(at, word): (usize, &'a String)| {
        if names.contains(&word.as_str()) {
            return words.get(at + 1).map(String::as_str);
        }
        names.iter().find_map(|name| word.strip_prefix(name)?.strip_prefix('='))
    };
    words.iter().enumerate().rev().find_map(value)
}

/// `/usr/bin/wrk`, `autocannon@8` and `node_modules/autocannon/autocannon.js` by their plain names.
pub(super) fn program(word: &str) -> &str {
    let name = Path::new(word).file_name().and_then(|name| name.to_str()).unwrap_or(word);
    let name = name.strip_suffix(".js").unwrap_or(name);
    name.split_once('@').map_or(name, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::command::CommandLine;

    fn tool(line: &str) -> Option<Tool> {
        Tool::of(CommandLine::parse(line).unwrap().words())
    }

    #[test]
    fn tools_are_known_by_their_program_behind_whatever_starts_them() {
        for (line, expected) in [
            ("wrk -t1 http://x/", Some(Tool::Wrk)),
            ("/usr/local/bin/wrk2 -R100 http://x/", Some(Tool::Wrk)),
            ("env -u A B=1 taskset -c 1 wrk http://x/", Some(Tool::Wrk)),
            ("A=1 ab -n 1 http://x/", Some(Tool::Ab)),
            ("timeout -k 5 60 h2load http://x/", Some(Tool::H2load)),
            ("npx --yes autocannon@8 http://x/", Some(Tool::Autocannon)),
            ("node node_modules/autocannon/autocannon.js x", Some(Tool::Autocannon)),
            ("sh -c 'wrk http://x/'", None),
            ("cd /tmp; wrk http://x/", None),
            ("k6 run script.js", Some(Tool::K6)),
            ("memtier_benchmark -p 1", Some(Tool::Memtier)),
            ("./bench --tool wrk", None),
        ] {
            assert_eq!(tool(line), expected, "{line}");
        }
    }

    #[test]
    fn how_long_a_load_runs_is_known_where_its_command_says_so() {
        for (line, expected) in [
            ("wrk -t1 -c64 -d5s http://x/", Some(5.0)),
            ("wrk -d 2m http://x/", Some(120.0)),
            ("autocannon -d 10 x", Some(10.0)),
            ("oha -z 500ms http://x/", None),
            ("oha -n 100 http://x/", None),
            ("k6 run --duration=1h script.js", Some(3600.0)),
            ("redis-benchmark -n 100", None),
            ("./own -d 5", None),
        ] {
            let line = CommandLine::parse(line).unwrap();
            let known = Tool::of(line.words()).and_then(|tool| tool.seconds(line.words()));
            assert_eq!(known, expected, "{line:?}");
        }
    }

    #[test]
    fn the_last_of_an_option_counts_as_it_does_for_the_tool() {
        let words = ["-n", "5", "--requests=7", "-n"].map(str::to_owned);
        assert_eq!(option(&words, &["-n", "--requests"]), Some("7"));
        assert_eq!(option(&words, &["-x"]), None);
    }
}
