//! The summary on the terminal.

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, LineStyle, Table, TableStyle};
use hasten_evidence::report::Style;

use super::words::change;
use super::{Effect, Fate, Report, Suggestion, Verdict};

pub(super) fn summary(report: &Report, style: Style) -> String {
    let mut text = format!("{}\n{}.\n", report.headline(), report.support());
    if !report.screened.is_empty() {
        text += &format!("\n{}\n", knobs(report, style));
    }
    let bytes = report.bytes_line().map(|line| format!("bytes: {line}"));
    let noise = report.noise_line().map(|line| format!("noise: {line}"));
    let advice = report.noise.advice.iter().map(|advice| format!("help: {advice}"));
    let rejected =
        report.disqualified.iter().map(|one| format!("disqualified: {}: {}", one.candidate, one.reason));
    let warnings = report.warnings.iter().map(|warning| format!("warning: {warning}"));
    let suggestions = report.suggestions.iter().map(by_hand);
    for line in
        bytes.into_iter().chain(noise).chain(advice).chain(rejected).chain(warnings).chain(suggestions)
    {
        text += &format!("{line}\n");
    }
    match (&report.commands.run, &report.commands.resume) {
        (Some(run), _) => text + &format!("\nUse it:\n  {run}\n"),
        (None, Some(resume)) if report.verdict == Verdict::Unfinished => {
            text + &format!("\nGo on:\n  {resume}\n")
        }
        _ => text,
    }
}

/// The file, the line to paste, and the reason.
fn by_hand(suggestion: &Suggestion) -> String {
    let Suggestion { text, why, file, line } = suggestion;
    let place = if file.is_empty() { String::new() } else { format!("{file}: ") };
    let line = if line.is_empty() { String::new() } else { format!(": {line}") };
    format!("by hand: {place}{text}{line} ({why})")
}

fn knobs(report: &Report, style: Style) -> String {
    let mut table = Table::new();
    let lines = TableStyle { row_separator: LineStyle::none(), ..UTF8_HORIZONTAL_ONLY };
    table.load_style(lines).set_content_arrangement(ContentArrangement::Dynamic);
    if let Some(width) = style.width {
        table.set_width(width);
    }
    if style.color {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    table.set_header([
        Cell::new("setting"),
        right("alone"),
        right("95 % interval"),
        right("bytes"),
        right("within the winner"),
        right("verdict"),
    ]);
    for row in &report.screened {
        let of_winner =
            report.winner.iter().flat_map(|winner| &winner.settings).find(|kept| kept.setting == row.setting);
        let carries = of_winner.and_then(|kept| kept.carries);
        let name = format!("{}={}", row.setting.knob, row.setting.level);
        let alone = |text: fn(Effect) -> String| right(&row.effect.map_or_else(|| "–".to_owned(), text));
        table.add_row([
            Cell::new(name),
            alone(|effect| change(effect.change)),
            alone(|effect| format!("[{}, {}]", change(effect.low), change(effect.high))),
            right(&row.bytes.map_or_else(|| "–".to_owned(), |bytes| change(bytes.change))),
            right(&carries.map_or_else(String::new, |effect| change(effect.change))),
            fate(row.fate),
        ]);
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

fn right(text: &str) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

fn fate(fate: Fate) -> Cell {
    let cell = right(fate.as_str());
    match fate {
        Fate::Kept => cell.fg(Color::Green),
        Fate::Harmful => cell.fg(Color::Yellow),
        Fate::Disqualified => cell.fg(Color::Red).add_attribute(Attribute::Bold),
        Fate::NotNeeded | Fate::NoGain | Fate::NotProven | Fate::Undecided | Fate::Untried => cell,
    }
}
