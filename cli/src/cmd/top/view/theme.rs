//! Colours by meaning. Every meaning also has a glyph, a word or a weight of
//! its own, so that nothing is lost with NO_COLOR.

use ratatui::style::{Color, Modifier, Style};

#[derive(Clone, Copy, Debug)]
pub(in crate::cmd::top) struct Theme {
    color: bool,
}

impl Theme {
    pub(in crate::cmd::top) const fn new(color: bool) -> Self {
        Self { color }
    }

    pub(super) fn title(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD | Modifier::REVERSED)
    }

    pub(super) fn heading(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(super) fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    pub(super) fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(super) fn border(self) -> Style {
        self.fg(Color::DarkGray)
    }

    pub(super) fn batched(self) -> Style {
        self.fg(Color::Green)
    }

    pub(super) fn single(self) -> Style {
        self.fg(Color::Cyan)
    }

    pub(super) fn scalar(self) -> Style {
        self.fg(Color::Yellow)
    }

    pub(super) fn bypassed(self) -> Style {
        self.fg(Color::Magenta)
    }

    pub(super) fn critical(self) -> Style {
        self.fg(Color::Red).add_modifier(Modifier::BOLD)
    }

    pub(super) fn warning(self) -> Style {
        self.fg(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    pub(super) fn note(self) -> Style {
        self.fg(Color::Cyan)
    }

    fn fg(self, color: Color) -> Style {
        if self.color { Style::new().fg(color) } else { Style::new() }
    }
}
