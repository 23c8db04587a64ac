//! The meaning of words and keys.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::widgets::{Clear, Paragraph, Wrap};

use super::{Theme, panel};

const HELP: &str = "\
↑ ↓ or k j   choose a program        p   pause and go on
Home End     first, last program     ?   this help
q or Esc     leave

fast      what did not take the original path: operations or bytes
batched   operations that shared the lanes of one AVX-512 batch
single    done at once by an engine for one operation at a time
scalar    queued, but run by the original function: too few waited
bypassed  never queued, for the reason that is given
failed    a lane's result was refused and the original redid it
lanes     mean number of operations in a batch, of 8
pays      lanes a batch needs to be cheaper than one by one
ratio     compressed size as a part of the uncompressed one
verified  compressed bytes that were decompressed again and compared
gathered  bytes held back so that they are compressed together
resting   the engine has failed, and is tried again by itself
on trial  it is being tried again
disabled  an operator has taken it out of service
CPU saved is the server's own estimate; `hasten bench` measures.";

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, theme: Theme) {
    let height = u16::try_from(HELP.lines().count() + 2).unwrap_or(u16::MAX);
    let place = area.centered(Constraint::Length(70), Constraint::Length(height.min(area.height)));
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(HELP).wrap(Wrap { trim: false }).block(panel("Help", theme)), place);
}
