//! `[devices]` in `hasten.toml`.

use std::path::PathBuf;

use toml::Spanned;

use super::DevicesConfig;
use super::error::ConfigError;
use super::file::{Reader, Value, number};
use crate::devices::{self, Asked};

const KEYS: [&str; 4] = ["use", "timeout_ms", "retry_ms", "libraries"];

impl Reader<'_> {
    pub(super) fn devices(&self, table: &Value<'_>, config: &mut DevicesConfig) -> Result<(), ConfigError> {
        for (key, value) in self.table("devices", table)? {
            match key.get_ref().as_ref() {
                "use" => config.asked = Some(self.asked(value)?),
                "timeout_ms" => config.timeout_ms = Some(self.timeout(value)?),
                "retry_ms" => config.retry_ms = Some(self.retry(value)?),
                "libraries" => config.libraries = Some(self.libraries(value)?),
                name => return Err(self.unknown(key.span(), ("key", " in [devices]"), name, &KEYS)),
            }
        }
        Ok(())
    }

    fn asked(&self, value: &Value<'_>) -> Result<Asked, ConfigError> {
        let wrong =
            |value: &Value<'_>| self.wrong("use", "\"off\", \"auto\" or a list such as [\"qatzip\"]", value);
        match value.get_ref().as_str() {
            Some("off") => return Ok(Asked::Off),
            Some("auto") => return Ok(Asked::Auto),
            Some(_) => return Err(wrong(value)),
            None => {}
        }
        let list = value.get_ref().as_array().filter(|list| !list.is_empty()).ok_or_else(|| wrong(value))?;
        let name = |item: &Value<'_>| {
            let name = item.get_ref().as_str().ok_or_else(|| wrong(item))?;
            devices::check_engine(name).map_err(|complaint| self.complaint("use", item, complaint))?;
            Ok(name.to_owned())
        };
        list.iter().map(name).collect::<Result<_, _>>().map(Asked::Only)
    }

    fn timeout(&self, value: &Value<'_>) -> Result<u64, ConfigError> {
        let timeout = number(value).and_then(devices::timeout);
        timeout.ok_or_else(|| self.wrong("timeout_ms", "a number of milliseconds from 1 to 10000", value))
    }

    fn retry(&self, value: &Value<'_>) -> Result<(u64, u64), ConfigError> {
        let pair = value.get_ref().as_array().and_then(|list| match &list[..] {
            [first, longest] => devices::retry(number(first)?, number(longest)?),
            _ => None,
        });
        let expected = "two numbers of milliseconds, such as [250, 30000], from 1 to 3600000";
        pair.ok_or_else(|| self.wrong("retry_ms", expected, value))
    }

    fn libraries(&self, value: &Value<'_>) -> Result<PathBuf, ConfigError> {
        let folder = std::path::absolute(self.file("libraries", value)?).unwrap_or_default();
        devices::library_folder(&folder).map_err(|complaint| self.complaint("libraries", value, complaint))
    }

    pub(super) fn complaint<T>(
        &self,
        key: &str,
        value: &Spanned<T>,
        (problem, fix): (String, String),
    ) -> ConfigError {
        ConfigError::Key { place: self.place(value.span()), key: key.to_owned(), problem, fix }
    }
}
