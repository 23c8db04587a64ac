//! The live view: keys in, frames out.

use std::io;
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::sampler::Sampler;
use super::state::State;
use super::view::{self, Theme};

/// Rates need two samples; nobody should wait a full interval for the first.
const FIRST_INTERVAL: Duration = Duration::from_millis(300);

/// Shows the view until the user quits. The terminal is restored afterwards, even after a panic.
pub(super) fn run(sampler: &mut Sampler, interval: Duration, color: bool) -> io::Result<()> {
    let mut terminal = ratatui::try_init()?;
    let outcome = refresh(&mut terminal, sampler, interval, Theme::new(color));
    ratatui::try_restore()?;
    outcome
}

fn refresh(
    terminal: &mut DefaultTerminal,
    sampler: &mut Sampler,
    interval: Duration,
    theme: Theme,
) -> io::Result<()> {
    let mut state = State::default();
    state.update(Instant::now(), sampler.sample());
    let mut next = Instant::now() + FIRST_INTERVAL.min(interval);
    loop {
        terminal.draw(|frame| view::draw(frame, &state, theme))?;
        let wait = next.saturating_duration_since(Instant::now());
        if event::poll(wait)? {
            match event::read()? {
                Event::Key(key) if !press(&mut state, key) => return Ok(()),
                _ => {}
            }
        }
        if Instant::now() >= next {
            next = Instant::now() + interval;
            if !state.paused {
                state.update(Instant::now(), sampler.sample());
            }
        }
    }
}

/// Returns false to quit.
fn press(state: &mut State, key: KeyEvent) -> bool {
    if key.kind == KeyEventKind::Release {
        return true;
    }
    match key.code {
        // Esc and q close what is open first.
        KeyCode::Esc | KeyCode::Char('q') if state.help => state.help = false,
        KeyCode::Esc | KeyCode::Char('q') => return false,
        // The terminal is raw: Ctrl-C is only a key.
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return false,
        KeyCode::Up | KeyCode::Char('k') => state.select(-1),
        KeyCode::Down | KeyCode::Char('j') => state.select(1),
        KeyCode::Home => state.select(isize::MIN),
        KeyCode::End => state.select(isize::MAX),
        KeyCode::Char('p') => state.paused = !state.paused,
        KeyCode::Char('?' | 'h') => state.help = !state.help,
        _ => {}
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::top::fixture;

    fn key(code: KeyCode) -> KeyEvent {
        KeyEvent::new(code, KeyModifiers::NONE)
    }

    #[test]
    fn q_escape_and_control_c_leave() {
        let mut state = State::default();
        assert!(!press(&mut state, key(KeyCode::Char('q'))));
        assert!(!press(&mut state, key(KeyCode::Esc)));
        assert!(!press(&mut state, KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
        assert!(press(&mut state, key(KeyCode::Char('c'))), "c alone is no key of ours");
    }

    #[test]
    fn help_opens_and_is_closed_before_leaving() {
        let mut state = State::default();
        assert!(press(&mut state, key(KeyCode::Char('?'))) && state.help);
        assert!(press(&mut state, key(KeyCode::Char('q'))) && !state.help);
        assert!(!press(&mut state, key(KeyCode::Char('q'))));
    }

    #[test]
    fn arrows_choose_and_p_pauses() {
        let mut state = fixture::state(true);
        let chosen = |state: &State| state.selected().unwrap().name().to_owned();
        press(&mut state, key(KeyCode::Down));
        assert!(chosen(&state) == "nginx" && state.selected().unwrap().counts_streams());
        press(&mut state, key(KeyCode::Down));
        assert_eq!(chosen(&state), "haproxy");
        press(&mut state, key(KeyCode::End));
        assert_eq!(chosen(&state), "envoy");
        press(&mut state, key(KeyCode::Up));
        press(&mut state, key(KeyCode::Home));
        assert_eq!(chosen(&state), "nginx");
        press(&mut state, key(KeyCode::Char('p')));
        assert!(state.paused);
        press(&mut state, key(KeyCode::Char('p')));
        assert!(!state.paused);
    }
}
