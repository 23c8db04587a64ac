//! `[process]` and `[environment]` in `hasten.toml`, and the options in `[node]`.

use std::collections::BTreeMap;

use super::error::ConfigError;
use super::file::{Reader, Value, number};
use crate::process::{Allocator, CpuList, NodeOption, ProcessConfig, is_reserved};

const KEYS: [&str; 6] = ["cpus", "thp", "allocator", "malloc_arenas", "malloc_hugepages", "malloc_keep"];

impl Reader<'_> {
    pub(super) fn process(&self, table: &Value<'_>, config: &mut ProcessConfig) -> Result<(), ConfigError> {
        for (key, value) in self.table("process", table)? {
            match key.get_ref().as_ref() {
                "cpus" => config.cpus = Some(self.cpus(value)?),
                "thp" => config.no_thp = self.no_thp(value)?,
                "allocator" => config.allocator = Some(self.allocator(value)?),
                "malloc_arenas" => config.malloc_arenas = Some(self.count("malloc_arenas", value, 1024)?),
                "malloc_hugepages" => config.malloc_hugepages = self.boolean("malloc_hugepages", value)?,
                "malloc_keep" => config.malloc_keep = Some(self.count("malloc_keep", value, 1024)?),
                name => return Err(self.unknown(key.span(), ("key", " in [process]"), name, &KEYS)),
            }
        }
        Ok(())
    }

    pub(super) fn environment(&self, table: &Value<'_>) -> Result<BTreeMap<String, String>, ConfigError> {
        let mut variables = BTreeMap::new();
        for (key, value) in self.table("environment", table)? {
            let name = key.get_ref().as_ref();
            if is_reserved(name) {
                let problem = format!("[environment] may not set {name}");
                let fix = "use the key for it in [process], [node] or [run], or set it yourself".to_owned();
                return Err(self.complaint(name, key, (problem, fix)));
            }
            let text = value.get_ref().as_str().filter(|text| !text.contains('\0'));
            let text = text.ok_or_else(|| self.wrong(name, "a text in quotes", value))?;
            variables.insert(name.to_owned(), text.to_owned());
        }
        Ok(variables)
    }

    pub(super) fn node_options(&self, value: &Value<'_>) -> Result<Vec<NodeOption>, ConfigError> {
        let expected = "a list of options, such as [\"--max-semi-space-size=32\"]";
        let list = value.get_ref().as_array().ok_or_else(|| self.wrong("options", expected, value))?;
        let option = |item: &Value<'_>| {
            let text = item.get_ref().as_str().ok_or_else(|| self.wrong("options", expected, item))?;
            NodeOption::parse(text).map_err(|complaint| self.complaint("options", item, complaint))
        };
        list.iter().map(option).collect()
    }

    pub(super) fn count(&self, key: &str, value: &Value<'_>, most: u64) -> Result<u64, ConfigError> {
        let count = number(value).filter(|count| (1..=most).contains(count));
        count.ok_or_else(|| self.wrong(key, "a number from 1 to 1024", value))
    }

    fn cpus(&self, value: &Value<'_>) -> Result<CpuList, ConfigError> {
        let list = value.get_ref().as_str().and_then(CpuList::parse);
        list.ok_or_else(|| self.wrong("cpus", "a list of CPUs, such as \"0,2-3\"", value))
    }

    fn no_thp(&self, value: &Value<'_>) -> Result<bool, ConfigError> {
        match value.get_ref().as_str() {
            Some("never") => Ok(true),
            Some("system") => Ok(false),
            _ => Err(self.wrong("thp", "\"never\" or \"system\"", value)),
        }
    }

    fn allocator(&self, value: &Value<'_>) -> Result<Allocator, ConfigError> {
        let name = value.get_ref().as_str();
        let name = name.ok_or_else(|| self.wrong("allocator", "the name of an allocator", value))?;
        Allocator::from_name(name)
            .ok_or_else(|| self.unknown(value.span(), ("allocator", ""), name, &Allocator::NAMES))
    }
}
