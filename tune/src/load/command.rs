//! A command line: its words, and whether it needs a shell.

use std::process::{Command, Stdio};

use super::LoadError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandLine {
    text: String,
    words: Vec<String>,
    needs_shell: bool,
}

impl CommandLine {
    pub(super) fn parse(text: &str) -> Result<Self, LoadError> {
        let words = shlex::split(text).ok_or_else(|| LoadError::Quote(text.to_owned()))?;
        if words.is_empty() {
            return Err(LoadError::Empty);
        }
        Ok(Self { text: text.to_owned(), words, needs_shell: needs_shell(text) })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn words(&self) -> &[String] {
        &self.words
    }

    pub(super) fn needs_shell(&self) -> bool {
        self.needs_shell
    }

    /// With no input, and its output captured.
    pub(super) fn command(&self) -> Command {
        let mut command = if self.needs_shell {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", &self.text]);
            shell
        } else {
            // As in a shell, assignments before the program are its environment.
            let (variables, program) =
                self.words.split_at(self.words.iter().take_while(|word| is_assignment(word)).count());
            let mut command = Command::new(program.first().map_or("true", String::as_str));
            command.args(program.iter().skip(1));
            command.envs(variables.iter().filter_map(|variable| variable.split_once('=')));
            command
        };
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// `NAME=value`.
pub(super) fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// Whether any unquoted character has a special meaning for a shell.
fn needs_shell(text: &str) -> bool {
    let mut quote = None;
    let mut letters = text.chars().peekable();
    let mut begins_word = true;
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('\''), _) => {}
            (_, '\\') => {
                letters.next();
            }
            (Some(_), '$' | '`') => return true,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(letter),
            // A URL's question mark and ampersand belong in quotes, but nobody starts a background job by
            // accident: the shell treats them as at the prompt.
            (None, '|' | '&' | ';' | '<' | '>' | '(' | ')' | '$' | '`' | '*' | '\n') => return true,
            (None, '~') if begins_word => return true,
            (None, '#') if begins_word => return true,
            (None, _) => {}
        }
        begins_word = quote.is_none() && letter.is_whitespace();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> CommandLine {
        CommandLine::parse(text).unwrap()
    }

    #[test]
    fn words_are_those_of_a_shell() {
        let line = line(r#"wrk -H 'Accept: a b' "http://x/?a=1&b=2" c\ d"#);
        assert_eq!(line.words(), ["wrk", "-H", "Accept: a b", "http://x/?a=1&b=2", "c d"]);
        assert!(!line.needs_shell);
    }

    #[test]
    fn a_shell_runs_only_what_needs_one() {
        for text in [
            "ab x | tee y",
            "for i in 1 2; do wrk; done",
            "wrk $URL",
            "wrk \"$URL\"",
            "wrk http://x/?a=1&b=2",
            "(wrk)",
        ] {
            assert!(line(text).needs_shell, "{text}");
        }
        for text in ["wrk 'a|b;$c'", "wrk a\\;b", "wrk \"a;b\" http://x/?a=1", "wrk a~b#c"] {
            assert!(!line(text).needs_shell, "{text}");
        }
    }

    #[test]
    fn variables_before_the_program_are_its_environment() {
        let command = line("A=1 B='x y' wrk -d1").command();
        assert_eq!(command.get_program(), "wrk");
        assert_eq!(command.get_envs().count(), 2);
    }

    #[test]
    fn what_is_not_a_command_is_named() {
        assert!(matches!(CommandLine::parse("  "), Err(LoadError::Empty)));
        assert!(matches!(CommandLine::parse("wrk 'x"), Err(LoadError::Quote(_))));
    }
}
