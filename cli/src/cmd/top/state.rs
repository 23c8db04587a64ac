//! The state of `hasten top`; its looks are left to `view`.

mod engine;
mod program;
mod traffic;

use std::time::{Duration, Instant};

use hasten_telemetry::{Engine, PageError, Process, Snapshot};

pub(in crate::cmd) use self::engine::in_words;
pub(super) use self::program::{Condition, Program, volume};
pub(super) use self::traffic::{Direction, ENGINES, Traffic, accelerated};

/// One page at one moment.
pub(super) struct Sample {
    pub(super) inode: u64,
    pub(super) program: String,
    pub(super) processes: Vec<Process>,
    pub(super) uptime: Duration,
    /// Time since boot when the sample was taken: the clock of the page's times.
    pub(super) boottime: Duration,
    pub(super) snapshot: Result<Snapshot, PageError>,
    /// Engines disabled by hand, whether or not a process has noticed.
    pub(super) disabled: Vec<Engine>,
}

/// Everything shown, and the user's choices.
#[derive(Default)]
pub(super) struct State {
    programs: Vec<Program>,
    /// By inode: the choice stays with the program when the list changes.
    selected: Option<u64>,
    pub(super) paused: bool,
    pub(super) help: bool,
}

impl State {
    /// Takes in samples of all pages; programs without one have ended.
    pub(super) fn update(&mut self, now: Instant, samples: Vec<Sample>) {
        self.programs.retain(|program| samples.iter().any(|sample| sample.inode == program.inode()));
        for sample in samples {
            match self.programs.iter_mut().find(|program| program.inode() == sample.inode) {
                Some(program) => program.update(now, sample),
                None => self.programs.push(Program::new(now, sample)),
            }
        }
        // The accelerators of a process stay together.
        self.programs.sort_by_key(|program| (program.first_pid(), program.counts_streams()));
        if self.selected().is_none() {
            self.selected = self.programs.first().map(Program::inode);
        }
    }

    /// By process number; a process with several accelerators is there once for each.
    pub(super) fn programs(&self) -> &[Program] {
        &self.programs
    }

    /// The same, in groups that are one process each.
    pub(super) fn by_process(&self) -> impl Iterator<Item = &[Program]> {
        self.programs.chunk_by(|one, next| one.is_same_process_as(next))
    }

    pub(super) fn selected(&self) -> Option<&Program> {
        Some(&self.programs[self.selected_position()?])
    }

    pub(super) fn selected_position(&self) -> Option<usize> {
        self.programs.iter().position(|program| Some(program.inode()) == self.selected)
    }

    /// Moves the selection down, or up for a negative number, without wrapping.
    pub(super) fn select(&mut self, by: isize) {
        let last = self.programs.len().saturating_sub(1);
        let position = self.selected_position().unwrap_or(0).saturating_add_signed(by).min(last);
        self.selected = self.programs.get(position).map(Program::inode);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::top::fixture;

    fn state(inodes: &[u64]) -> State {
        let mut state = State::default();
        state.update(Instant::now(), inodes.iter().map(|inode| fixture::idle(*inode)).collect());
        state
    }

    #[test]
    fn the_choice_stays_with_its_program_and_inside_the_list() {
        let mut state = state(&[10, 20, 30]);
        assert_eq!(state.selected().map(Program::inode), Some(10));
        state.select(1);
        state.update(Instant::now(), vec![fixture::idle(5), fixture::idle(20), fixture::idle(30)]);
        assert_eq!(state.selected().map(Program::inode), Some(20));
        state.select(isize::MAX);
        assert_eq!(state.selected().map(Program::inode), Some(30));
        state.select(isize::MIN);
        assert_eq!(state.selected().map(Program::inode), Some(5));
    }

    #[test]
    fn the_accelerators_of_a_process_stand_together() {
        let page = |inode, process, accelerator: &str| {
            let mut sample = fixture::idle(process);
            sample.inode = inode;
            sample.snapshot.as_mut().unwrap().accelerator = accelerator.to_owned();
            sample
        };
        let mut state = State::default();
        let samples = vec![page(1, 20, "gzip"), page(2, 10, "gzip"), page(3, 20, "tls"), page(4, 30, "tls")];
        state.update(Instant::now(), samples);
        let groups: Vec<Vec<u64>> =
            state.by_process().map(|pages| pages.iter().map(Program::inode).collect()).collect();
        assert_eq!(groups, [vec![2], vec![3, 1], vec![4]]);
    }

    #[test]
    fn a_program_that_ends_leaves_and_the_choice_moves_on() {
        let mut state = state(&[10, 20]);
        state.update(Instant::now() + Duration::from_secs(1), vec![fixture::idle(20)]);
        assert_eq!(state.programs().len(), 1);
        assert_eq!(state.selected().map(Program::inode), Some(20));
        state.update(Instant::now() + Duration::from_secs(2), vec![]);
        assert!(state.selected().is_none());
        state.select(1);
        assert!(state.selected().is_none());
    }
}
