//! The page: one self-contained file that makes no requests.

mod budget;
mod charts;
mod tables;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment};
use serde::Serialize;

use self::budget::Budget;
use self::charts::Charts;
use self::tables::{Card, HeapRow, Numbers, Tile};
use crate::advice::Advice;
use crate::compare::Comparison;
use crate::summary::Summary;
use crate::verdict::{Headline, Tone};

const TEMPLATE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

#[derive(Debug, thiserror::Error)]
pub enum PageError {
    #[error("cannot make the page: {0}")]
    Template(#[from] minijinja::Error),
    #[error("cannot make the page's data: {0}")]
    Data(#[from] serde_json::Error),
}

/// Stays below a megabyte, however long the traces and however many heaps they have.
pub fn page(traces: &[Summary], advice: &[Advice]) -> Result<String, PageError> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.add_template("page", TEMPLATE)?;

    let budget = Budget::new(traces);
    let data = serde_json::to_string(&Charts::of(traces, &budget))?;
    let comparison = Comparison::of(traces);
    let headline = match (&comparison, traces.first()) {
        (Some(comparison), _) => comparison.headline(),
        (None, Some(trace)) => Headline::of(trace),
        (None, None) => Headline::new(Tone::Unknown, "No trace"),
    };
    let view = Page {
        style: [hasten_charts::LOOK, hasten_charts::STYLE, hasten_charts::CHARTS_STYLE, STYLE].join("\n"),
        script: [hasten_charts::SCRIPT, hasten_charts::CHARTS_SCRIPT, SCRIPT].join("\n"),
        data: hasten_charts::embeddable(&data),
        title: tables::title(traces),
        tone: tables::tone(headline.tone),
        headline: headline.text,
        about: traces.iter().map(tables::about).collect(),
        tiles: match (&comparison, traces) {
            (None, [trace]) => tables::tiles(trace),
            _ => Vec::new(),
        },
        comparison: comparison.as_ref().map(tables::comparison),
        advice: advice.iter().map(tables::card).collect(),
        heaps: tables::heaps(traces),
        hidden_heaps: tables::hidden_heaps(traces),
        numbers: tables::numbers(traces, &budget),
        lines: traces.iter().map(tables::lines).collect(),
    };
    Ok(environment.get_template("page")?.render(Serde(&view))?)
}

/// Everything the template refers to.
#[derive(Serialize)]
struct Page {
    style: String,
    script: String,
    data: String,
    title: String,
    tone: &'static str,
    headline: String,
    about: Vec<String>,
    tiles: Vec<Tile>,
    comparison: Option<tables::ComparisonTable>,
    advice: Vec<Card>,
    heaps: Vec<HeapRow>,
    hidden_heaps: u64,
    numbers: Vec<Numbers>,
    lines: Vec<tables::LinesView>,
}
