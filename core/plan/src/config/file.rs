//! `hasten.toml`: read by hand rather than derived, so that every complaint has a line and a suggestion.

use std::ops::Range;
use std::path::{Path, PathBuf};

use hasten_names::{Algorithm, NEVER};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{ConfigError, Place};
use super::{Config, NodeCache, Request};
use crate::accelerator::{self, gzip};
use crate::suggestion;

pub(super) type Value<'a> = Spanned<DeValue<'a>>;

pub(super) fn parse(text: &str, path: &Path) -> Result<Config, ConfigError> {
    let reader = Reader { text, path };
    let document = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
        place: reader.place(error.span().unwrap_or_default()),
        message: error.message().to_owned(),
    })?;
    let mut config = Config { file: Some(path.to_owned()), ..Config::default() };
    let mut request = Request {
        only_source: format!("[run] only in {}", path.display()),
        without_source: format!("[run] without in {}", path.display()),
        ..Request::default()
    };
    let mut disabled = Vec::new();
    for (key, value) in document.get_ref() {
        match key.get_ref().as_ref() {
            "run" => reader.run(value, &mut config, &mut request)?,
            "tls" => disabled.extend((!reader.tls(value, &mut config)?).then_some("tls")),
            "gzip" => disabled.extend((!reader.gzip(value, &mut config)?).then_some("gzip")),
            "devices" => reader.devices(value, &mut config.devices)?,
            "node" => disabled.extend((!reader.node(value, &mut config)?).then_some("node")),
            "process" => reader.process(value, &mut config.process)?,
            "readcache" => reader.read_cache(value, &mut config.storage)?,
            "wal" => reader.wal(value, &mut config.storage)?,
            "tier" => config.tier = Some(reader.tier(value)?),
            "environment" => config.environment = reader.environment(value)?,
            name => {
                let valid = [
                    "run",
                    "tls",
                    "gzip",
                    "devices",
                    "node",
                    "process",
                    "readcache",
                    "wal",
                    "tier",
                    "environment",
                ];
                return Err(reader.unknown(key.span(), ("table", ""), name, &valid));
            }
        }
    }
    config.requests.push(request);
    for name in disabled {
        let without_source = format!("[{name}] enabled in {}", path.display());
        config.prefer(Request { without_source, without: vec![name.into()], ..Request::default() });
    }
    Ok(config)
}

pub(super) struct Reader<'a> {
    text: &'a str,
    path: &'a Path,
}

impl Reader<'_> {
    fn run(&self, table: &Value<'_>, config: &mut Config, request: &mut Request) -> Result<(), ConfigError> {
        for (key, value) in self.table("run", table)? {
            match key.get_ref().as_ref() {
                "strict" => config.strict = self.boolean("strict", value)?,
                "only" => request.only = Some(self.accelerators("only", value)?),
                "without" => request.without = self.accelerators("without", value)?,
                name => {
                    let valid = ["strict", "only", "without"];
                    return Err(self.unknown(key.span(), ("key", " in [run]"), name, &valid));
                }
            }
        }
        Ok(())
    }

    /// Whether the accelerator stays enabled.
    fn tls(&self, table: &Value<'_>, config: &mut Config) -> Result<bool, ConfigError> {
        let mut enabled = true;
        for (key, value) in self.table("tls", table)? {
            match key.get_ref().as_ref() {
                "enabled" => enabled = self.boolean("enabled", value)?,
                "break_even" => self.break_even(value, config)?,
                name => {
                    return Err(self.unknown(
                        key.span(),
                        ("key", " in [tls]"),
                        name,
                        &["enabled", "break_even"],
                    ));
                }
            }
        }
        Ok(enabled)
    }

    /// Whether the accelerator stays enabled.
    fn gzip(&self, table: &Value<'_>, config: &mut Config) -> Result<bool, ConfigError> {
        let mut enabled = true;
        for (key, value) in self.table("gzip", table)? {
            match key.get_ref().as_ref() {
                "enabled" => enabled = self.boolean("enabled", value)?,
                "verify" => config.gzip.verify = self.boolean("verify", value)?,
                "engines" => config.gzip.engines = self.engines(value)?,
                "window" => config.gzip.full_window = self.gzip_window(value)?,
                name => {
                    let valid = ["enabled", "verify", "engines", "window"];
                    return Err(self.unknown(key.span(), ("key", " in [gzip]"), name, &valid));
                }
            }
        }
        Ok(enabled)
    }

    /// Whether the accelerator stays enabled.
    fn node(&self, table: &Value<'_>, config: &mut Config) -> Result<bool, ConfigError> {
        let mut enabled = true;
        for (key, value) in self.table("node", table)? {
            match key.get_ref().as_ref() {
                "enabled" => enabled = self.boolean("enabled", value)?,
                "cache" => config.node.cache = self.node_cache(value)?,
                "gc_record" => config.node.gc_record = self.boolean("gc_record", value)?,
                "gc_advice" => config.node.gc_advice = Some(self.file("gc_advice", value)?),
                "options" => config.node.options = self.node_options(value)?,
                "threadpool" => config.node.threadpool = Some(self.count("threadpool", value, 1024)?),
                "compile_cache" => config.node.compile_cache = self.boolean("compile_cache", value)?,
                name => {
                    let valid = [
                        "enabled",
                        "cache",
                        "gc_record",
                        "gc_advice",
                        "options",
                        "threadpool",
                        "compile_cache",
                    ];
                    return Err(self.unknown(key.span(), ("key", " in [node]"), name, &valid));
                }
            }
        }
        Ok(enabled)
    }

    fn node_cache(&self, value: &Value<'_>) -> Result<NodeCache, ConfigError> {
        let cache = value.get_ref().as_str().and_then(NodeCache::from_name);
        cache.ok_or_else(|| self.wrong("cache", "\"on\", \"read\" or \"off\"", value))
    }

    /// A path, relative to the directory of this file.
    pub(super) fn file(&self, key: &str, value: &Value<'_>) -> Result<PathBuf, ConfigError> {
        let path = value.get_ref().as_str().filter(|path| !path.is_empty());
        let path = path.ok_or_else(|| self.wrong(key, "the path of a file", value))?;
        Ok(self.path.parent().unwrap_or(Path::new("")).join(path))
    }

    fn gzip_window(&self, value: &Value<'_>) -> Result<bool, ConfigError> {
        match value.get_ref().as_str() {
            Some("full") => Ok(true),
            Some("configured") => Ok(false),
            _ => Err(self.wrong("window", "\"configured\" or \"full\"", value)),
        }
    }

    fn engines(&self, value: &Value<'_>) -> Result<Vec<String>, ConfigError> {
        let expected = "a list of engines, such as [\"isal\", \"libdeflate\"]";
        let engines = self.names("engines", value, expected, "engine", &gzip::ENGINES)?;
        // An empty list would mean `enabled = false`.
        if engines.is_empty() { Err(self.wrong("engines", expected, value)) } else { Ok(engines) }
    }

    fn break_even(&self, table: &Value<'_>, config: &mut Config) -> Result<(), ConfigError> {
        for (key, value) in self.table("break_even", table)? {
            let operation = key.get_ref().as_ref();
            if !Algorithm::NAMES.contains(&operation) {
                let what = ("operation", " in [tls.break_even]");
                return Err(self.unknown(key.span(), what, operation, &Algorithm::NAMES));
            }
            let lanes = self.lanes(operation, value)?;
            config.tls.break_even.insert(operation.to_owned(), lanes);
        }
        Ok(())
    }

    fn lanes(&self, key: &str, value: &Value<'_>) -> Result<u8, ConfigError> {
        number(value)
            .and_then(|number| u8::try_from(number).ok())
            .filter(|number| (1..=NEVER).contains(&usize::from(*number)))
            .ok_or_else(|| self.wrong(key, "a number from 1 to 9 (9 means never)", value))
    }

    fn accelerators(&self, key: &str, value: &Value<'_>) -> Result<Vec<String>, ConfigError> {
        let known: Vec<_> = accelerator::names().collect();
        self.names(key, value, "a list of accelerators, such as [\"tls\"]", "accelerator", &known)
    }

    /// A list that contains only `known` names.
    fn names(
        &self,
        key: &str,
        value: &Value<'_>,
        expected: &'static str,
        what: &'static str,
        known: &[&str],
    ) -> Result<Vec<String>, ConfigError> {
        let array = value.get_ref().as_array().ok_or_else(|| self.wrong(key, expected, value))?;
        let name = |item: &Value<'_>| {
            let name = item.get_ref().as_str().ok_or_else(|| self.wrong(key, expected, item))?;
            if known.contains(&name) {
                Ok(name.to_owned())
            } else {
                Err(self.unknown(item.span(), (what, ""), name, known))
            }
        };
        array.iter().map(name).collect()
    }

    pub(super) fn boolean(&self, key: &str, value: &Value<'_>) -> Result<bool, ConfigError> {
        value.get_ref().as_bool().ok_or_else(|| self.wrong(key, "true or false", value))
    }

    pub(super) fn table<'t, 'i>(
        &self,
        key: &str,
        value: &'t Value<'i>,
    ) -> Result<&'t DeTable<'i>, ConfigError> {
        value.get_ref().as_table().ok_or_else(|| self.wrong(key, "a table", value))
    }

    pub(super) fn unknown(
        &self,
        span: Range<usize>,
        (what, within): (&'static str, &'static str),
        name: &str,
        valid: &[&str],
    ) -> ConfigError {
        ConfigError::Unknown {
            place: self.place(span),
            what,
            name: name.to_owned(),
            within,
            fix: suggestion(name, valid),
        }
    }

    pub(super) fn wrong(&self, key: &str, expected: &'static str, value: &Value<'_>) -> ConfigError {
        let found = self.text.get(value.span()).unwrap_or_default().trim();
        let short: String = found.lines().next().unwrap_or_default().chars().take(40).collect();
        ConfigError::Value { place: self.place(value.span()), key: key.to_owned(), expected, found: short }
    }

    pub(super) fn place(&self, span: Range<usize>) -> Place {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        Place { path: self.path.to_owned(), line: 1 + before.matches('\n').count() }
    }
}

/// A number in any of TOML's notations.
pub(super) fn number(value: &Value<'_>) -> Option<u64> {
    let number = value.get_ref().as_integer()?;
    u64::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok()
}
