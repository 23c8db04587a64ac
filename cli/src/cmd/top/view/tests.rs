//! Frames as a terminal would show them.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::{Color, Modifier};

use super::*;
use crate::cmd::top::fixture;
use crate::cmd::top::state::State;

fn frame(state: &State, width: u16, height: u16, color: bool) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, state, Theme::new(color))).unwrap();
    terminal
}

fn text(state: &State, width: u16, height: u16) -> String {
    frame(state, width, height, false).backend().to_string()
}

#[test]
fn a_busy_server_on_a_wide_terminal() {
    insta::assert_snapshot!(text(&fixture::state(true), 120, 40));
}

#[test]
fn a_busy_server_on_a_classic_terminal() {
    insta::assert_snapshot!(text(&fixture::state(false), 80, 24));
}

#[test]
fn a_bypassed_server_with_a_failed_verification() {
    let mut state = fixture::state(true);
    state.select(2);
    insta::assert_snapshot!(text(&state, 100, 36));
}

#[test]
fn the_compression_of_a_busy_server() {
    let mut state = fixture::state(true);
    state.select(1);
    insta::assert_snapshot!("compression_wide", text(&state, 120, 36));
    insta::assert_snapshot!("compression_classic", text(&state, 80, 24));
}

/// If room is short, the fix is worth more than a chart.
#[test]
fn warnings_with_their_cure_fit_on_a_classic_terminal() {
    let mut state = fixture::state(true);
    state.select(2);
    let shown = text(&state, 80, 24);
    assert!(shown.contains("critical: 2 batched") && shown.contains("→ Run memory"), "{shown}");
}

#[test]
fn engines_that_are_not_in_service() {
    insta::assert_snapshot!(text(&fixture::troubled(), 100, 40));
    // If there is no room for the table, the warnings say it.
    let small = text(&fixture::troubled(), 80, 24);
    assert!(!small.contains("Breakers") && small.contains("critical: libdeflate is out"), "{small}");
}

#[test]
fn a_page_of_another_version() {
    let mut state = fixture::state(true);
    state.select(3);
    insta::assert_snapshot!(text(&state, 100, 20));
}

/// It counts no handshakes, and so shows none.
#[test]
fn two_kinds_of_memory() {
    let shown = text(&fixture::tiered(), 80, 24);
    assert!(!shown.contains("andshake") && !shown.contains("operations"), "{shown}");
    for part in
        ["100 MB", "near 26.0 MB", "far 74.0 MB (74% of all, 75% wanted)", "no far memory was left 2 times"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn help_lies_on_top() {
    let mut state = fixture::state(false);
    state.help = true;
    insta::assert_snapshot!(text(&state, 80, 24));
}

#[test]
fn nothing_left_a_pause_and_too_little_room_are_said() {
    let mut state = State::default();
    state.paused = true;
    let gone = text(&state, 80, 24);
    assert!(gone.contains("All accelerated processes have ended") && gone.contains("PAUSED"), "{gone}");
    assert!(text(&state, 40, 10).contains("needs 72×20"), "{}", text(&state, 40, 10));
    state.update(std::time::Instant::now(), vec![fixture::idle(1)]);
    assert!(text(&state, 80, 24).contains("Measuring"));
}

/// Draws every size a terminal may have while it is being resized.
#[test]
fn no_size_is_too_odd() {
    let mut state = fixture::state(true);
    for selected in 0..4 {
        for (width, height) in (1..160).step_by(13).flat_map(|w| (1..60).step_by(7).map(move |h| (w, h))) {
            frame(&state, width, height, true);
        }
        state.select(1);
        assert!(selected < 4);
    }
}

#[test]
fn critical_is_red_and_without_color_nothing_has_one() {
    let mut state = fixture::state(true);
    state.select(2);
    let colors = |color| {
        let terminal = frame(&state, 100, 36, color);
        let cells = terminal.backend().buffer().content().to_vec();
        let critical: Vec<_> =
            cells.iter().filter(|cell| cell.fg == Color::Red).map(|c| c.symbol()).collect();
        let others = cells.iter().any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset);
        let bold = cells.iter().any(|cell| cell.modifier.contains(Modifier::BOLD));
        (critical.concat(), others, bold)
    };
    let (critical, _, _) = colors(true);
    assert!(critical.contains("critical") && critical.contains("CRITICAL"), "{critical}");
    assert_eq!(colors(false), (String::new(), false, true));
}
