//! The short table of `hasten bench`: its findings for every workload, one line per case.

use serde::Deserialize;
use serde_json::Value;

use super::{Ratio, Results, gzip, node, tls};

/// A report of `hasten bench` without a workload: the reports of all workloads.
#[derive(Debug, Deserialize)]
pub(super) struct Run {
    parts: Vec<Value>,
    #[serde(default)]
    left_out: Vec<LeftOut>,
}

#[derive(Debug, Deserialize)]
struct LeftOut {
    workload: String,
}

/// A case in one line.
pub(super) struct Brief<'a> {
    /// Its position within the workload's part; cases with the same position stay in the order of measurement.
    pub(super) order: u8,
    pub(super) what: String,
    pub(super) sides: [String; 2],
    pub(super) ratio: &'a Ratio,
    pub(super) verdict: &'a str,
}

impl Run {
    /// The workloads that could not be measured.
    pub(super) fn missing(&self) -> Vec<&str> {
        self.left_out.iter().map(|one| one.workload.as_str()).collect()
    }

    pub(super) fn parts(&self) -> &[Value] {
        &self.parts
    }

    pub(super) fn table(&self) -> Result<String, serde_json::Error> {
        let first = self.parts.first().map_or_else(|| Ok(String::new()), circumstances)?;
        let mut text = format!(
            "{first}. CPU time per operation, or speed per CPU second; the interval holds the ratio in 95 of 100 repetitions.\n\n\
             | workload | stock | hasten | **stock ÷ hasten** |\n|---|---:|---:|---:|\n"
        );
        for part in &self.parts {
            text += &match part["workload"].as_str() {
                Some("tls") => lines(part, tls::Row::brief)?,
                Some("gzip") => lines(part, gzip::Row::brief)?,
                _ => lines(part, node::Row::brief)?,
            };
        }
        Ok(text)
    }
}

fn circumstances(part: &Value) -> Result<String, serde_json::Error> {
    Ok(Results::<Value>::deserialize(part)?.circumstances())
}

fn lines<R>(part: &Value, brief: fn(&R) -> Option<Brief<'_>>) -> Result<String, serde_json::Error>
where
    R: for<'de> Deserialize<'de>,
{
    let results = Results::<R>::deserialize(part)?;
    let mut briefs: Vec<_> = results.rows.iter().filter_map(brief).collect();
    briefs.sort_by_key(|brief| brief.order);
    Ok(briefs.iter().map(Brief::line).collect())
}

impl Brief<'_> {
    /// A ratio within the noise is not printed as a gain.
    fn line(&self) -> String {
        let Ratio { value, low, high } = self.ratio;
        let [stock, hasten] = &self.sides;
        let ratio = match self.verdict {
            "no difference" => self.verdict.to_owned(),
            _ => format!("**{value:.2}**"),
        };
        format!("| {} | {stock} | {hasten} | {ratio} [{low:.2}, {high:.2}] |\n", self.what)
    }
}
