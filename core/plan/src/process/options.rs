//! Node.js options that a configuration may set: a short list, because the file may come from anywhere.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::node_options;

/// An option from the list, with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeOption {
    /// In the form given to Node.js.
    pub text: String,
    at: usize,
}

struct Rule {
    name: &'static str,
    values: Values,
    /// Whether `NODE_OPTIONS` may contain it; otherwise it must be on the command line.
    in_variable: bool,
    /// Options with which a user makes the same decision.
    same: &'static [&'static str],
}

enum Values {
    None,
    OneOf(&'static [&'static str]),
    /// A number, and how many such pieces of memory in MiB it takes.
    Number(u64, u64, u64),
}

const RULES: [Rule; 9] = [
    Rule {
        name: "--max-semi-space-size",
        values: Values::Number(1, 512, 3),
        in_variable: true,
        same: &["--max-semi-space-size", "--max-heap-size"],
    },
    Rule {
        name: "--max-old-space-size",
        values: Values::Number(16, 1 << 20, 1),
        in_variable: true,
        same: &["--max-old-space-size", "--max-old-space-size-percentage", "--max-heap-size"],
    },
    Rule {
        name: "--use-largepages",
        values: Values::OneOf(&["off", "on", "silent"]),
        in_variable: true,
        same: &["--use-largepages"],
    },
    Rule {
        name: "--v8-pool-size",
        values: Values::Number(0, 64, 0),
        in_variable: true,
        same: &["--v8-pool-size"],
    },
    flag("--always-sparkplug", &["--always-sparkplug", "--no-always-sparkplug"]),
    flag("--maglev", MAGLEV),
    flag("--no-maglev", MAGLEV),
    flag("--single-threaded-gc", &["--single-threaded-gc", "--single-threaded"]),
    flag("--no-short-builtin-calls", &["--short-builtin-calls", "--no-short-builtin-calls"]),
];

const MAGLEV: &[&str] = &["--maglev", "--no-maglev"];

const fn flag(name: &'static str, same: &'static [&'static str]) -> Rule {
    Rule { name, values: Values::None, in_variable: false, same }
}

impl NodeOption {
    /// Parses an option from the list; the error says what is wrong and what to write instead.
    pub fn parse(text: &str) -> Result<Self, (String, String)> {
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let Some(at) = RULES.iter().position(|rule| rule.name == name) else {
            let names = RULES.map(|rule| rule.name);
            let fix = crate::suggestion(name, &names);
            return Err((format!("`{name}` is not an option that a configuration may set"), fix));
        };
        let (fits, form) = match RULES[at].values {
            Values::None => (value.is_none(), name.to_owned()),
            Values::OneOf(words) => {
                (value.is_some_and(|value| words.contains(&value)), format!("{name}={}", words.join("|")))
            }
            Values::Number(least, most, _) => {
                let digits = value.filter(|value| value.bytes().all(|byte| byte.is_ascii_digit()));
                let number = digits.and_then(|digits| digits.parse::<u64>().ok());
                let fits = number.is_some_and(|number| (least..=most).contains(&number));
                (fits, format!("{name}=N, N from {least} to {most}"))
            }
        };
        if fits {
            Ok(Self { text: text.to_owned(), at })
        } else {
            Err((format!("`{text}` is no value of {name}"), format!("write {form}")))
        }
    }

    pub(super) fn is_for_variable(&self) -> bool {
        RULES[self.at].in_variable
    }

    /// Where the user has already made this decision, if anywhere.
    pub(super) fn decided<'a>(
        &self,
        variable: Option<&OsStr>,
        arguments: impl Iterator<Item = &'a OsStr>,
    ) -> Option<String> {
        find(RULES[self.at].same, variable, arguments)
    }

    /// Why this much memory is too little for it.
    pub(super) fn does_not_fit(&self, memory: Option<u64>) -> Option<String> {
        let Values::Number(_, _, pieces @ 1..) = RULES[self.at].values else { return None };
        let memory = memory? >> 20;
        let value: u64 = self.text.split_once('=')?.1.parse().ok()?;
        let (needed, allowed) = if pieces > 1 { (pieces * value, memory / 2) } else { (value, memory) };
        (needed > allowed)
            .then(|| format!("it may take {needed} MiB, and {memory} MiB are all that there are"))
    }
}

/// Where a user has already decided what `option` decides: in `NODE_OPTIONS` or on the command line.
pub fn decided<'a>(
    option: &str,
    variable: Option<&OsStr>,
    arguments: impl Iterator<Item = &'a OsStr>,
) -> Option<String> {
    let rule = RULES.iter().find(|rule| rule.name == option)?;
    find(rule.same, variable, arguments)
}

fn find<'a>(
    same: &[&str],
    variable: Option<&OsStr>,
    mut arguments: impl Iterator<Item = &'a OsStr>,
) -> Option<String> {
    let words = node_options::texts(variable.unwrap_or_default());
    if let Some(word) = words.iter().find(|word| node_options::sets(word, same)) {
        return Some(format!("NODE_OPTIONS says {} already", String::from_utf8_lossy(word)));
    }
    let word = arguments.find(|word| node_options::sets(word.as_bytes(), same))?;
    Some(format!("the command line says {} already", word.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_the_list_is_taken() {
        for right in ["--max-semi-space-size=32", "--use-largepages=on", "--maglev", "--v8-pool-size=0"] {
            assert_eq!(NodeOption::parse(right).unwrap().text, right);
        }
        for (wrong, fix) in [
            ("--max-semi-space-size=0", "write --max-semi-space-size=N, N from 1 to 512"),
            ("--max-semi-space-size", "write --max-semi-space-size=N, N from 1 to 512"),
            ("--max-semi-space-size=+8", "write --max-semi-space-size=N, N from 1 to 512"),
            ("--use-largepages=yes", "write --use-largepages=off|on|silent"),
            ("--maglev=1", "write --maglev"),
            ("--maglve", "did you mean `--maglev`?"),
            ("--max-semi-space-size=8 --require=/tmp/x.js", "write --max-semi-space-size=N, N from 1 to 512"),
        ] {
            assert_eq!(NodeOption::parse(wrong).unwrap_err().1, fix, "{wrong}");
        }
        assert!(NodeOption::parse("--require=/tmp/x.js").is_err());
    }

    #[test]
    fn what_the_user_has_decided_is_found_in_every_spelling() {
        let option = NodeOption::parse("--no-maglev").unwrap();
        let line = [OsStr::new("--maglev"), OsStr::new("app.js")];
        let decided = option.decided(None, line.into_iter());
        assert_eq!(decided.as_deref(), Some("the command line says --maglev already"));
        let heap = NodeOption::parse("--max-old-space-size=99").unwrap();
        let variable = OsStr::new("--max_heap_size=50");
        assert!(heap.decided(Some(variable), [].into_iter()).is_some());
        assert!(option.decided(Some(variable), [].into_iter()).is_none());
    }

    #[test]
    fn what_does_not_fit_into_memory_says_so() {
        let fits =
            |text: &str, mib: u64| NodeOption::parse(text).unwrap().does_not_fit(Some(mib << 20)).is_none();
        assert!(fits("--max-semi-space-size=64", 384) && !fits("--max-semi-space-size=64", 383));
        assert!(fits("--max-old-space-size=512", 512) && !fits("--max-old-space-size=513", 512));
        assert!(fits("--v8-pool-size=64", 1) && fits("--maglev", 1));
    }
}
