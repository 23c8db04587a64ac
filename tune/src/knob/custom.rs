//! A knob defined by the user: `NAME=env:VARIABLE=a,b,c`.

use std::str::FromStr;

use thiserror::Error;

use super::{Facts, Knob, Risk, Value, registry};
use crate::service::Launch;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Custom {
    name: String,
    about: String,
    variable: String,
    values: Vec<String>,
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`{text}` is no knob: {problem}; write NAME=env:VARIABLE=VALUE,VALUE…")]
pub struct CustomError {
    text: String,
    problem: String,
}

impl FromStr for Custom {
    type Err = CustomError;

    fn from_str(text: &str) -> Result<Self, CustomError> {
        let error = |problem: String| CustomError { text: text.to_owned(), problem };
        let (name, rest) = text.split_once('=').ok_or_else(|| error("it has no name".into()))?;
        let rest =
            rest.strip_prefix("env:").ok_or_else(|| error("only variables (env:) can be set".into()))?;
        let (variable, values) = rest.split_once('=').ok_or_else(|| error("it has no values".into()))?;
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
        };
        if !is_name(name) {
            return Err(error(format!("`{name}` is no name; letters, digits, - and _ are")));
        }
        if registry().iter().any(|knob| knob.name() == name) {
            return Err(error(format!("there is a knob `{name}` already")));
        }
        if !is_name(variable) || variable.contains('-') {
            return Err(error(format!("`{variable}` is no variable")));
        }
        if hasten_plan::process::is_reserved(variable) {
            return Err(error(format!("{variable} is hasten's to set; there are knobs for it")));
        }
        let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
        if values.iter().any(String::is_empty) {
            return Err(error("one of its values is empty".into()));
        }
        let about = format!("the variable {variable}");
        Ok(Self { name: name.to_owned(), about, variable: variable.to_owned(), values })
    }
}

impl Knob for Custom {
    fn name(&self) -> &str {
        &self.name
    }

    fn about(&self) -> &str {
        &self.about
    }

    fn scope(&self) -> &str {
        "this service"
    }

    fn cost(&self) -> &str {
        "known to who asked for it"
    }

    fn risk(&self) -> Risk {
        Risk::medium("hasten does not know what the variable does.")
    }

    /// The user's own value is the one to compare with.
    fn levels(&self, facts: &Facts) -> Result<Vec<Value>, String> {
        let present = facts.environment.get(std::ffi::OsStr::new(&self.variable));
        let present = present.map(|value| value.to_string_lossy().into_owned());
        let stock = Value::stock(present.clone().unwrap_or_else(|| "unset".into()));
        let others = self.values.iter().filter(|value| present.as_ref() != Some(value));
        Ok([stock].into_iter().chain(others.map(Value::word)).collect())
    }

    fn apply(&self, value: &Value, launch: &mut Launch) {
        // The user's own environment would override the profile.
        launch.environment.insert(self.variable.clone().into(), None);
        launch.profile.set("environment", &self.variable, value.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_knob_is_a_name_a_variable_and_values() {
        let custom: Custom = "pool=env:POOL_SIZE=4, 8,16".parse().unwrap();
        assert_eq!((custom.variable.as_str(), custom.values.len()), ("POOL_SIZE", 3));
        for (text, problem) in [
            ("pool", "it has no name"),
            ("pool=POOL=1", "only variables (env:) can be set"),
            ("pool=env:POOL", "it has no values"),
            ("a b=env:POOL=1", "`a b` is no name; letters, digits, - and _ are"),
            ("tls=env:POOL=1", "there is a knob `tls` already"),
            ("x=env:A-B=1", "`A-B` is no variable"),
            ("x=env:LD_PRELOAD=/x.so", "LD_PRELOAD is hasten's to set; there are knobs for it"),
            ("x=env:A=1,,2", "one of its values is empty"),
        ] {
            let error = text.parse::<Custom>().unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }
}
