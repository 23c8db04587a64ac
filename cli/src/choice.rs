//! Which accelerators are wanted: the flags, variables and file shared by `run` and `check`, so that both plan the
//! same.

use std::ffi::OsString;
use std::path::Path;

use clap::{Args, Parser};
use hasten_plan::Config;
use hasten_plan::config::Request;

use crate::args::AcceleratorName;
use crate::failure::Failure;

#[derive(Debug, Args)]
pub(crate) struct Choice {
    /// Apply nothing but these accelerators
    #[arg(long, value_name = "LIST", value_delimiter = ',', env = "HASTEN_ONLY", hide_env_values = true,
          value_parser = AcceleratorName)]
    only: Option<Vec<String>>,

    /// Leave these accelerators out
    #[arg(long, value_name = "LIST", value_delimiter = ',', env = "HASTEN_WITHOUT", hide_env_values = true,
          value_parser = AcceleratorName)]
    without: Vec<String>,

    /// Configuration file [default: hasten.toml, then /etc/hasten/hasten.toml]
    #[arg(long, value_name = "FILE", env = "HASTEN_CONFIG", hide_env_values = true)]
    config: Option<OsString>,
}

/// What the variables say, as `hasten run` without a flag takes them.
#[derive(Debug, Parser)]
struct OfEnvironment {
    #[command(flatten)]
    choice: Choice,
}

impl Choice {
    /// The configuration of a `hasten run` started without flags in this environment.
    pub(crate) fn of_environment() -> Result<Config, Failure> {
        let read = OfEnvironment::try_parse_from(["hasten"]);
        let read = read.map_err(|error| {
            Failure::usage(
                error.to_string().trim().to_owned(),
                "correct or unset HASTEN_ONLY and HASTEN_WITHOUT",
            )
        })?;
        read.choice.config()
    }

    /// The configuration file, overridden by flags and variables.
    pub(crate) fn config(&self) -> Result<Config, Failure> {
        // In service files and manifests an empty variable means an unset one.
        let given =
            |names: &[String]| names.iter().filter(|name| !name.is_empty()).cloned().collect::<Vec<_>>();
        let file = self.config.as_deref().filter(|file| !file.is_empty());
        let mut config = Config::load(file.map(Path::new))?;
        config.prefer(Request {
            only_source: "--only".into(),
            without_source: "--without".into(),
            only: self.only.as_deref().map(given).filter(|names| !names.is_empty()),
            without: given(&self.without),
        });
        Ok(config)
    }
}
