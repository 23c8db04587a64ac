//! Whether the load can be run at all.

use std::path::Path;

use hasten_bench::server::find_program;

use super::LoadError;
use super::command::{CommandLine, is_assignment};
use super::recognise::{STARTERS, Tool, program};

/// Those of [`STARTERS`] that search for the tool differently from a shell, or install it.
const FETCHERS: [&str; 4] = ["npx", "bunx", "pnpx", "node"];

/// How to get a program that is not a known load tool.
const UNKNOWN: &str = "install it, or give its full path";

/// Only the shell knows how it interprets a line: in that case, only a tool at the front is looked for.
pub(super) fn check(line: &CommandLine, tool: Option<Tool>) -> Result<(), LoadError> {
    let words = line.words();
    let Some(first) = words.iter().find(|word| !is_assignment(word)) else { return Ok(()) };
    let named = Tool::position(words).map(|(at, tool)| (&words[at], tool));
    if line.needs_shell() && named.as_ref().is_none_or(|(word, _)| *word != first) {
        return Ok(());
    }
    let is_starter = STARTERS.contains(&program(first));
    if let Some((word, tool)) = named
        && !FETCHERS.contains(&program(first))
    {
        is_there(word, tool.source())?;
    }
    let how = match program(first) {
        "npx" => "run `apt-get install npm` as root",
        _ => tool.filter(|_| !is_starter).map_or(UNKNOWN, Tool::source),
    };
    is_there(first, how)
}

fn is_there(word: &str, how: &'static str) -> Result<(), LoadError> {
    let found = if word.contains('/') { Path::new(word).exists() } else { find_program(word).is_ok() };
    if found { Ok(()) } else { Err(LoadError::Missing { program: word.to_owned(), how }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(text: &str) -> Option<String> {
        let line = CommandLine::parse(text).unwrap();
        match check(&line, Tool::of(line.words())) {
            Err(LoadError::Missing { program, how }) => Some(format!("{program}: {how}")),
            Err(error) => panic!("{error}"),
            Ok(()) => None,
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_missed_and_where_it_comes_from_is_said() {
        let wrk = missing("/no/such/wrk -d1 http://x/").unwrap();
        assert_eq!(wrk, "/no/such/wrk: run `apt-get install wrk` as root");
        assert!(missing("env A=1 /no/such/h2load https://x/").unwrap().contains("nghttp2-client"));
        assert!(missing("/no/such/autocannon x").unwrap().contains("npm install"));
        assert!(missing("A=1 no-such-tool-of-mine").unwrap().contains("full path"));
        assert!(missing("/no/such/ab -n 1 http://x/ | tee y").unwrap().contains("apache2-utils"));
    }

    #[test]
    fn what_is_there_or_is_known_to_a_shell_alone_is_not_missed() {
        for text in ["sh -c 'no-such-tool'", "true", "A=1 env true", "cd /tmp; no-such-tool", "/bin/true"] {
            assert_eq!(missing(text), None, "{text}");
        }
    }
}
