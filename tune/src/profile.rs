//! A profile: the proven settings, as the `hasten.toml` that `hasten run --config` applies.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toml::Value;

/// The tables of `hasten.toml` that are set, with reasons.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    tables: BTreeMap<String, BTreeMap<String, Setting>>,
    /// The evidence being recorded; it becomes the comment of every setting made meanwhile.
    #[serde(skip)]
    because: Option<String>,
    /// Accelerators that it omits although `hasten run` would load them, and why.
    #[serde(skip)]
    missing: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Setting {
    value: Value,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    comments: Vec<String>,
}

impl Profile {
    /// Whether nothing is set: the service as its owner runs it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Sets the comment of subsequent settings.
    pub fn because(&mut self, why: impl Into<String>) {
        self.because = Some(why.into());
    }

    pub fn set(&mut self, table: &str, key: &str, value: impl Into<Value>) {
        self.setting(table, key, value.into()).comment();
    }

    /// Adds an item to a list, once.
    pub fn add(&mut self, table: &str, key: &str, item: &str) {
        let setting = self.setting(table, key, Value::Array(Vec::new()));
        if let Value::Array(items) = &mut setting.setting.value
            && !items.iter().any(|known| known.as_str() == Some(item))
        {
            items.push(item.into());
        }
        setting.comment();
    }

    /// Records why the profile keeps an accelerator from being loaded.
    pub fn is_without(&mut self, why: impl Into<String>) {
        self.missing.push(why.into());
    }

    /// A key's value.
    #[must_use]
    pub fn get(&self, table: &str, key: &str) -> Option<&Value> {
        self.tables.get(table)?.get(key).map(|setting| &setting.value)
    }

    /// The file, complete: accelerators that were not proven are left out.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut complete = self.clone();
        complete.because = None;
        let missing = std::mem::take(&mut complete.missing);
        complete.setting("run", "only", Value::Array(Vec::new())).setting.comments.extend(missing);
        let mut text = String::new();
        for (table, settings) in &complete.tables {
            if !text.is_empty() {
                text.push('\n');
            }
            text += &format!("[{}]\n", table_name(table));
            for (key, setting) in settings {
                for comment in setting.comments.iter().flat_map(|comment| comment.lines()) {
                    text += &format!("# {comment}\n");
                }
                text += &format!("{} = {}\n", name(key), value(&setting.value));
            }
        }
        text
    }

    fn setting(&mut self, table: &str, key: &str, value: Value) -> Commented<'_> {
        let known = self.tables.entry(table.to_owned()).or_default().entry(key.to_owned());
        let is_list = value.is_array();
        let setting = known
            .and_modify(|setting| {
                if !is_list {
                    setting.value = value.clone();
                }
            })
            .or_insert(Setting { value, comments: Vec::new() });
        Commented { setting, because: self.because.as_deref() }
    }
}

struct Commented<'a> {
    setting: &'a mut Setting,
    because: Option<&'a str>,
}

impl Commented<'_> {
    fn comment(self) {
        let Some(because) = self.because else { return };
        if !self.setting.comments.iter().any(|known| known == because) {
            self.setting.comments.push(because.to_owned());
        }
    }
}

/// `tls.break_even` is a table in a table.
fn table_name(table: &str) -> String {
    table.split('.').map(name).collect::<Vec<_>>().join(".")
}

/// As a bare key if possible.
fn name(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if !key.is_empty() && key.chars().all(bare) { key.to_owned() } else { Value::from(key).to_string() }
}

/// On one line, spaced as people write it.
fn value(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(self::value).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hasten_plan::Config;

    #[test]
    fn a_profile_is_a_configuration_with_what_was_proven_and_why() {
        let mut profile = Profile::default();
        assert!(profile.is_empty());
        profile.because("tls=on: −41.2 % CPU per request (−43.0 to −39.5)");
        profile.add("run", "only", "tls");
        profile.because("tls-break-even=1: −2.0 %\nin two lines");
        profile.set("tls.break_even", "rsa-2048-sign", 1);
        profile.add("run", "only", "tls");
        let text = profile.to_toml();
        assert_eq!(
            text,
            "[run]\n\
             # tls=on: −41.2 % CPU per request (−43.0 to −39.5)\n\
             # tls-break-even=1: −2.0 %\n# in two lines\n\
             only = [\"tls\"]\n\n\
             [tls.break_even]\n\
             # tls-break-even=1: −2.0 %\n# in two lines\n\
             rsa-2048-sign = 1\n"
        );
        Config::parse(&text, "hasten.toml".as_ref()).unwrap();
    }

    #[test]
    fn accelerators_that_are_not_named_are_left_out() {
        let mut profile = Profile::default();
        profile.set("environment", "A B\"", "x\ny");
        let text = profile.to_toml();
        assert!(text.ends_with("[run]\nonly = []\n"), "{text}");
        let read: toml::Table = text.parse().unwrap();
        assert_eq!(read["environment"]["A B\""].as_str(), Some("x\ny"));
    }

    #[test]
    fn what_it_keeps_from_being_loaded_is_named_with_the_way_back() {
        let mut profile = Profile::default();
        profile.because("gzip=on: −41.2 %");
        profile.add("run", "only", "gzip");
        profile.is_without("tls is not loaded: it was not tried");
        let text = profile.to_toml();
        let expected =
            "[run]\n# gzip=on: −41.2 %\n# tls is not loaded: it was not tried\nonly = [\"gzip\"]\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_last_value_wins_and_lists_grow() {
        let mut profile = Profile::default();
        profile.set("process", "cpus", "0");
        profile.set("process", "cpus", "1");
        for option in ["--a", "--b", "--a"] {
            profile.add("node", "options", option);
        }
        assert_eq!(profile.get("process", "cpus").and_then(Value::as_str), Some("1"));
        let options = profile.get("node", "options").and_then(Value::as_array).unwrap();
        assert_eq!(options.iter().filter_map(Value::as_str).collect::<Vec<_>>(), ["--a", "--b"]);
    }
}
