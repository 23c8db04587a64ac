//! Parses what follows the options in `--help`: examples and other blocks, and paragraphs.

/// What a page of 80 columns leaves for a line of an example.
const WIDTH: usize = 72;
const EXAMPLES: &str = "Examples";
const EXIT_CODES: &str = "Exit codes";

/// Lines that are not to be filled, under a heading.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) heading: String,
    pub(super) lines: Vec<String>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Help {
    pub(super) examples: Option<Block>,
    /// A code and what it means.
    pub(super) exit_codes: Vec<(String, String)>,
    pub(super) other: Vec<Block>,
    pub(super) paragraphs: Vec<String>,
    /// Paragraphs on the exit code.
    pub(super) exit_notes: Vec<String>,
}

impl Help {
    pub(super) fn parse(text: &str) -> Self {
        let mut help = Self::default();
        for paragraph in
            text.split("\n\n").map(|part| part.trim_matches('\n')).filter(|part| !part.is_empty())
        {
            let heading = paragraph.lines().next().and_then(|line| line.strip_suffix(':'));
            match heading.filter(|_| paragraph.lines().skip(1).all(|line| line.starts_with("  "))) {
                Some(EXIT_CODES) => help.exit_codes.extend(paragraph.lines().skip(1).filter_map(code)),
                Some(heading) => help.add(block(heading, paragraph)),
                None if paragraph.starts_with("The exit code") => help.exit_notes.push(filled(paragraph)),
                None => help.paragraphs.push(filled(paragraph)),
            }
        }
        help
    }

    fn add(&mut self, block: Block) {
        match block.heading == EXAMPLES {
            true => self.examples = Some(block),
            false => self.other.push(block),
        }
    }
}

fn filled(paragraph: &str) -> String {
    paragraph.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

fn code(line: &str) -> Option<(String, String)> {
    let (code, text) = line.trim().split_once(' ')?;
    Some((code.to_owned(), text.trim().to_owned()))
}

fn block(heading: &str, paragraph: &str) -> Block {
    let lines = paragraph.lines().skip(1).map(|line| line.strip_prefix("  ").unwrap_or(line));
    let fits = lines.clone().all(|line| line.chars().count() <= WIDTH);
    let lines = if fits { lines.map(str::to_owned).collect() } else { lines.flat_map(stacked).collect() };
    Block { heading: heading.to_owned(), lines }
}

/// Splits a line in two: what is typed, and below it its comment, which is separated by two spaces or more.
fn stacked(line: &str) -> Vec<String> {
    if let Some(comment) = line.strip_prefix("  ") {
        return vec![format!("    {}", comment.trim_start())];
    }
    match line.split_once("  ").map(|(typed, rest)| (typed, rest.trim_start())) {
        Some((typed, comment)) if !comment.starts_with(['>', '|', '&']) => {
            vec![typed.to_owned(), format!("    {comment}")]
        }
        _ => vec![line.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_goes_where_it_belongs() {
        let help = Help::parse(
            "Examples:\n  hasten a   one\n  hasten b --long\n               two\n\nExit codes:\n  0    done\n  130  Ctrl-C\n\n\
             The exit code is 1 when\nnothing was found.\n\nA note\nof two lines.\n\nKeys:\n  q  quit\n",
        );
        let lines = &help.examples.as_ref().unwrap().lines;
        assert_eq!(lines, &["hasten a   one", "hasten b --long", "             two"]);
        assert_eq!(help.exit_codes[1], ("130".to_owned(), "Ctrl-C".to_owned()));
        assert_eq!(help.exit_notes, ["The exit code is 1 when nothing was found."]);
        assert_eq!(help.paragraphs, ["A note of two lines."]);
        assert_eq!((&*help.other[0].heading, &*help.other[0].lines[0]), ("Keys", "q  quit"));
    }

    #[test]
    fn where_a_line_is_too_wide_every_comment_stands_below() {
        let word = "x".repeat(80);
        let help = Help::parse(&format!("Examples:\n  a  > b\n  c   one\n  {word}\n          two\n"));
        assert_eq!(help.examples.unwrap().lines, ["a  > b", "c", "    one", &*word, "    two"]);
    }
}
