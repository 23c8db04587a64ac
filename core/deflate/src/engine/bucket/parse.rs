//! Decides which matches are taken.

use super::cpu::{Cpu, Work};
use super::finder::{Finder, Match, STEP, View};
use super::level::Level;
use super::split::{INTERVAL, Split};
use super::tokens::{MOST, Sink, Tokens};

/// Where the parser is in the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) position: u32,
    /// The first position that is not ready.
    pub(super) ready: u32,
}

/// Makes the tokens of the next block, and returns where it ends.
pub(super) struct Parse<'p, 'f, L> {
    pub(super) finder: &'p mut Finder<'f, L>,
    pub(super) tokens: &'p mut Tokens,
    pub(super) place: Place,
}

/// So close to the end, lengths must be cut.
const MARGIN: u32 = 12;

/// At most so many literals are taken without looking.
const BLIND: u32 = 16;

impl<L: Level> Work for Parse<'_, '_, L> {
    type Output = Place;

    #[inline(always)]
    fn run<C: Cpu>(self, cpu: C) -> Place {
        let Self { finder, tokens, mut place } = self;
        let view = finder.view();
        let (start, end) = (place.position, view.text().end());
        let mut split = Split::default();
        loop {
            let goal = (tokens.len() + INTERVAL).min(MOST);
            let mut parser = Parser::<C, L> { cpu, view, finder, sink: tokens.sink(), place, end };
            parser.go(goal);
            place = parser.place;
            let count = parser.sink.len();
            tokens.set_len(count);
            let (length, left) = (place.position - start, end - place.position);
            if left == 0 || count >= MOST || split.ends(tokens, length as usize, left as usize) {
                return place;
            }
        }
    }
}

struct Parser<'p, 'f, C, L> {
    cpu: C,
    view: View,
    finder: &'p mut Finder<'f, L>,
    sink: Sink,
    place: Place,
    end: u32,
}

impl<C: Cpu, L: Level> Parser<'_, '_, C, L> {
    /// Until there are so many tokens, or a few more.
    #[inline(always)]
    fn go(&mut self, goal: usize) {
        if self.place.position == 0 && self.end > 0 {
            self.literal();
        }
        let safe = self.end.saturating_sub(MARGIN);
        if L::LAZY == 0 {
            self.greedy(goal, safe);
        } else {
            self.lazy(goal, safe);
        }
        if self.place.position >= safe {
            self.finish(goal);
        }
    }

    #[inline(always)]
    fn greedy(&mut self, goal: usize, safe: u32) {
        let mut last = self.place.position;
        while self.place.position < safe && self.sink.len() < goal {
            let here = self.best_at(self.place.position);
            if here.is_good() {
                self.matched(here);
                last = self.place.position;
            } else {
                self.literal();
                self.literals_since(last, safe);
            }
        }
    }

    #[inline(always)]
    fn lazy(&mut self, goal: usize, safe: u32) {
        if self.place.position >= safe {
            return;
        }
        let mut last = self.place.position;
        let mut next = self.best_at(self.place.position + 1);
        let mut here = self.best_at(self.place.position);
        while self.place.position < safe && self.sink.len() < goal {
            let mut is_literal = !here.is_good() || is_better(next, here, L::NICE, 2);
            if L::LAZY == 2 && !is_literal && here.length() < L::NICE {
                let after_next = self.best_at(self.place.position + 2);
                is_literal = is_better(after_next, here, L::NICE, 6);
            }
            if is_literal {
                self.literal();
                if self.literals_since(last, safe) {
                    next = self.best_at(self.place.position);
                }
                here = next;
            } else {
                self.matched(here);
                last = self.place.position;
                here = self.best_at(self.place.position);
            }
            next = self.best_at(self.place.position + 1);
        }
    }

    /// The last bytes.
    #[inline(always)]
    fn finish(&mut self, goal: usize) {
        while self.place.position < self.end && self.sink.len() < goal {
            let here = self.best_at(self.place.position);
            if here.is_good() && self.end - self.place.position >= 4 {
                self.matched(here);
            } else {
                self.literal();
            }
        }
    }

    #[inline(always)]
    fn best_at(&mut self, at: u32) -> Match {
        while self.place.ready <= at {
            self.place.ready = self.finder.advance(self.cpu, self.place.ready);
        }
        Finder::<L>::best(self.view, self.cpu, at)
    }

    #[inline(always)]
    fn literal(&mut self) {
        self.sink.literal(self.view.text().byte(self.place.position));
        self.place.position += 1;
    }

    /// Where no match has been for long, some more literals; whether there were any.
    #[inline(always)]
    fn literals_since(&mut self, last: u32, safe: u32) -> bool {
        let blind = (self.place.position - last) >> L::PATIENCE;
        if blind == 0 {
            return false;
        }
        for _ in 0..blind.min(BLIND).min(safe.saturating_sub(self.place.position)) {
            self.literal();
        }
        true
    }

    #[inline(always)]
    fn matched(&mut self, found: Match) {
        let length = found.length().min(self.end - self.place.position);
        self.sink.matched(length, found.distance());
        self.place.position += length;
        // What a long match covers is not entered, but for its end.
        if self.place.ready + 2 * STEP < self.place.position {
            self.place.ready = self.finder.start_at((self.place.position - STEP) & !(STEP - 1));
        }
    }
}

#[inline(always)]
fn is_better(later: Match, than: Match, nice: u32, by: i32) -> bool {
    later.is_good()
        && later.length() >= than.length()
        && than.length() < nice
        && later.score() - than.score() > by
}
