//! Standard output and the terminal behind it.

use std::io::{self, IsTerminal, Write};

/// Writes to standard output. A reader that has seen enough, such as `head`, is not a failure; a full disk is.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    read_or_not(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// The outcome of writing where nobody has to read.
pub(crate) fn read_or_not(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}

/// Colours are for terminals that accept escape sequences, and never used with `NO_COLOR` (<https://no-color.org>).
pub(crate) fn has_colours() -> bool {
    let forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stdout().is_terminal() && !forbidden && !is_dumb()
}

/// Whether standard error can redraw a line.
pub(crate) fn can_redraw() -> bool {
    io::stderr().is_terminal() && !is_dumb()
}

/// `TERM=dumb`: the terminal shows escape sequences instead of obeying them.
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}
