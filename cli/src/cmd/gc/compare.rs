//! Several traces side by side, on a terminal.

use hasten_v8::compare::{Comparison, Row};
use hasten_v8::units;

use super::Findings;
use super::report::{heading, line, lines_read};
use super::screen::{Screen, harmless};

/// A description of each trace, then a column for each.
pub(super) fn render(text: &mut String, findings: &Findings, comparison: &Comparison, screen: Screen) {
    let names: Vec<_> = comparison.columns.iter().map(|column| harmless(&column.name)).collect();
    for (trace, name) in findings.traces.iter().zip(&names) {
        heading(text, trace, name, screen);
    }
    let headline = comparison.headline();
    line(text, &format!("\n{}.\n", screen.toned(headline.tone, &harmless(&headline.text))));
    // As many columns as fit; the others follow below, again beside the first.
    let fit = ((screen.width.saturating_sub(46)) / 20).max(1);
    let others: Vec<usize> = (1..names.len()).collect();
    for some in others.chunks(fit) {
        let columns: Vec<usize> = std::iter::once(0).chain(some.iter().copied()).collect();
        line(text, &table(comparison, &names, &columns, screen));
        line(text, "");
    }
    if comparison.columns.iter().any(|column| column.heaps > 1) {
        line(text, "Of each trace, the heap with the most time in pauses is compared.");
    }
    for trace in &findings.traces {
        lines_read(text, trace, screen);
    }
}

fn table(comparison: &Comparison, names: &[String], columns: &[usize], screen: Screen) -> String {
    let header: Vec<&str> = std::iter::once("").chain(columns.iter().map(|at| names[*at].as_str())).collect();
    let mut table = screen.table(&header);
    for row in &comparison.rows {
        let cells = columns.iter().map(|at| cell(row, *at));
        table.add_row(std::iter::once(row.name.to_owned()).chain(cells));
    }
    table.to_string()
}

/// The value, and its ratio to the first trace's.
fn cell(row: &Row, at: usize) -> String {
    let Some(value) = row.values[at] else { return "–".to_owned() };
    let value = row.unit.show(value);
    match row.ratios[at].filter(|_| at > 0) {
        Some(ratio) => format!("{value} {:>6}", units::ratio(ratio)),
        None => value,
    }
}
