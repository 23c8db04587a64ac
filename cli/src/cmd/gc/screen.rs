//! The terminal: how wide, and whether it has colours.

use std::io::IsTerminal;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use hasten_v8::verdict::Tone;

use crate::output::has_colours;

/// For output that is not a terminal.
const DEFAULT_WIDTH: usize = 110;
/// Prose in longer lines is hard to read.
const PROSE_WIDTH: usize = 110;
const NARROWEST: usize = 40;

#[derive(Debug, Clone, Copy)]
pub(super) struct Screen {
    pub(super) colours: bool,
    pub(super) width: usize,
}

impl Screen {
    /// `COLUMNS` wins over the terminal's own width.
    pub(super) fn stdout() -> Self {
        let terminal = std::io::stdout().is_terminal();
        let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        // A terminal that does not know its size says 0.
        let own = || Table::new().width().filter(|width| terminal && *width > 0).map(usize::from);
        let width = columns.or_else(own).unwrap_or(DEFAULT_WIDTH);
        Self { colours: has_colours(), width: width.max(NARROWEST) }
    }

    /// The first column is left-aligned, figures are right-aligned.
    pub(super) fn table(self, header: &[&str]) -> Table {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(u16::try_from(self.width).unwrap_or(u16::MAX)).set_header(header);
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        if let Some(first) = table.column_mut(0) {
            first.set_padding((0, 1));
        }
        table
    }

    pub(super) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(super) fn soft(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(super) fn toned(self, tone: Tone, text: &str) -> String {
        match tone {
            Tone::Good => self.paint("1;32", text),
            Tone::Notable => self.paint("1;33", text),
            Tone::Bad => self.paint("1;31", text),
            Tone::Unknown => self.bold(text),
        }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Wraps prose to fit, with `first` before the first line and as many spaces before the others.
    pub(super) fn wrapped(self, first: &str, text: &str) -> String {
        let indent = first.chars().count();
        let room = self.width.min(PROSE_WIDTH).saturating_sub(indent).max(20);
        let mut lines = vec![String::new()];
        for word in text.split_whitespace() {
            let line = lines.last_mut().expect("there is always a line");
            let length = line.chars().count();
            if length > 0 && length + 1 + word.chars().count() > room {
                lines.push(word.to_owned());
                continue;
            }
            if length > 0 {
                line.push(' ');
            }
            line.push_str(word);
        }
        first.to_owned() + &lines.join(&format!("\n{}", " ".repeat(indent)))
    }
}

/// A log may contain control sequences; they are shown, not obeyed.
pub(super) fn harmless(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NARROW: Screen = Screen { colours: false, width: 40 };

    #[test]
    fn prose_fits_and_loses_no_word() {
        let text = "one two three four five six seven eight nine ten eleven twelve";
        let wrapped = NARROW.wrapped("  - ", text);
        assert!(wrapped.lines().all(|line| line.chars().count() <= 40), "{wrapped}");
        assert!(wrapped.lines().skip(1).all(|line| line.starts_with("    ")), "{wrapped}");
        assert_eq!(wrapped.split_whitespace().skip(1).collect::<Vec<_>>().join(" "), text);
        let long = "a".repeat(100);
        assert_eq!(NARROW.wrapped("", &long), long);
    }

    #[test]
    fn colours_are_there_only_where_they_are_wanted() {
        assert_eq!(NARROW.toned(Tone::Bad, "text"), "text");
        let colourful = Screen { colours: true, ..NARROW };
        assert_eq!(colourful.toned(Tone::Bad, "text"), "\x1b[1;31mtext\x1b[0m");
    }

    #[test]
    fn a_line_of_a_log_cannot_command_the_terminal() {
        assert_eq!(harmless("a\x1b]0;title\x07b\u{9b}c"), "a\u{fffd}]0;title\u{fffd}b\u{fffd}c");
    }
}
