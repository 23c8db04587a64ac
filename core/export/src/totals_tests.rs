use hasten_telemetry::{Event, Reason};
use proptest::prelude::*;

use super::*;

fn reading(inode: u64, program: &str, handshakes: u64) -> Reading {
    let mut counters = Counters::default();
    counters[Event::HandshakeFinished] = handshakes;
    Reading {
        id: PageId { inode, creator_pid: 100, started_boottime_ns: 7 },
        key: Key { program: program.to_owned(), accelerator: "tls".to_owned(), container: String::new() },
        counters,
        page: Live { processes: 3, ..Live::default() },
    }
}

fn handshakes(totals: &Totals, program: &str) -> u64 {
    let key = Key { program: program.to_owned(), accelerator: "tls".to_owned(), container: String::new() };
    totals.programs().get(&key).map_or(0, |program| program.counters[Event::HandshakeFinished])
}

#[test]
fn programs_of_one_name_add_up_and_others_do_not() {
    let mut totals = Totals::default();
    totals.update(vec![reading(1, "nginx", 10), reading(2, "nginx", 5), reading(3, "haproxy", 7)], &[]);
    assert_eq!((handshakes(&totals, "nginx"), handshakes(&totals, "haproxy")), (15, 7));
    totals.update(vec![reading(1, "nginx", 11), reading(2, "nginx", 5), reading(3, "haproxy", 7)], &[]);
    assert_eq!((handshakes(&totals, "nginx"), handshakes(&totals, "haproxy")), (16, 7));
}

#[test]
fn what_has_ended_stays_counted_up_to_its_last_moment() {
    let mut totals = Totals::default();
    totals.update(vec![reading(1, "nginx", 10)], &[]);
    totals.update(vec![], &[reading(1, "nginx", 12)]);
    assert_eq!(handshakes(&totals, "nginx"), 12);
    assert!(totals.programs().values().all(|program| program.live.is_empty()));
    // A restart: the new page begins at zero.
    totals.update(vec![reading(2, "nginx", 3)], &[]);
    assert_eq!(handshakes(&totals, "nginx"), 15);
    assert_eq!(totals.programs().values().map(|program| program.live.len()).sum::<usize>(), 1);
}

#[test]
fn a_page_that_was_out_of_sight_is_not_counted_twice() {
    let mut totals = Totals::default();
    totals.update(vec![reading(1, "nginx", 10)], &[]);
    totals.update(vec![], &[]);
    totals.update(vec![], &[]);
    totals.update(vec![reading(1, "nginx", 14)], &[]);
    assert_eq!(handshakes(&totals, "nginx"), 14);
}

#[test]
fn an_inode_that_is_used_again_is_another_page() {
    let mut totals = Totals::default();
    totals.update(vec![reading(1, "nginx", 10)], &[]);
    let mut again = reading(1, "nginx", 4);
    again.id.started_boottime_ns = 8;
    totals.update(vec![again], &[]);
    assert_eq!(handshakes(&totals, "nginx"), 14);
}

#[test]
fn a_page_cannot_take_its_counts_to_another_program() {
    let mut totals = Totals::default();
    totals.update(vec![reading(1, "nginx", 10)], &[]);
    totals.update(vec![reading(1, "renamed", 12)], &[]);
    assert_eq!((handshakes(&totals, "nginx"), handshakes(&totals, "renamed")), (12, 0));
}

#[test]
fn a_failure_that_is_counted_late_takes_nothing_back() {
    let mut totals = Totals::default();
    let batch = |failed| {
        let mut page = reading(1, "nginx", 0);
        page.counters[Algorithm::P256Sign].batched = 8;
        page.counters[Algorithm::P256Sign].failed = failed;
        vec![page]
    };
    let good = |totals: &Totals| totals.programs().values().next().unwrap().good[Algorithm::P256Sign.index()];
    totals.update(batch(0), &[]);
    assert_eq!(good(&totals), 8);
    totals.update(batch(1), &[]);
    assert_eq!(good(&totals), 8);
}

#[test]
fn names_without_end_cost_bounded_memory() {
    let mut totals = Totals::default();
    for round in 0..2000_u64 {
        totals.update(vec![reading(round, &format!("program-{round}"), 1)], &[]);
    }
    assert_eq!(totals.programs().len(), MOST_KEYS + 1);
    assert!(totals.pages.len() <= MOST_GONE + 1 && totals.gone.len() <= MOST_GONE);
    let all: u64 = totals.programs().values().map(|program| program.counters[Event::HandshakeFinished]).sum();
    assert_eq!(all, 2000);
    assert_eq!(totals.programs()[&Key::rest()].counters[Event::HandshakeFinished], 2000 - MOST_KEYS as u64);
}

/// A page's changes between two looks.
#[derive(Clone, Debug)]
enum Step {
    Count(usize, u64),
    End(usize),
    Hide(usize),
    Damage(usize, u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..4_usize, 0..100_u64).prop_map(|(page, more)| Step::Count(page, more)),
        1 => (0..4_usize).prop_map(Step::End),
        1 => (0..4_usize).prop_map(Step::Hide),
        1 => (0..4_usize, 0..50_u64).prop_map(|(page, value)| Step::Damage(page, value)),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    /// Whatever pages do, a total never shrinks; and while none is damaged, it is the truth.
    #[test]
    fn totals_are_what_was_counted_and_never_shrink(steps in steps()) {
        let mut totals = Totals::default();
        let mut truth = 0_u64;
        let mut pages = [(1_u64, 0_u64); 4];
        let (mut last, mut generation, mut is_damaged) = (0, 4_u64, false);
        for (at, page) in pages.iter_mut().enumerate() {
            page.0 = at as u64;
        }
        for step in steps {
            let mut hidden = None;
            let mut ended = Vec::new();
            match step {
                Step::Count(page, more) => (pages[page].1, truth) = (pages[page].1 + more, truth + more),
                Step::End(page) => {
                    ended.push(reading(pages[page].0, "nginx", pages[page].1));
                    pages[page] = (generation, 0);
                    generation += 1;
                }
                Step::Hide(page) => hidden = Some(page),
                Step::Damage(page, value) => (pages[page].1, is_damaged) = (value, true),
            }
            let seen = pages.iter().enumerate().filter(|(at, _)| Some(*at) != hidden);
            totals.update(seen.map(|(_, (inode, count))| reading(*inode, "nginx", *count)).collect(), &ended);
            let now = handshakes(&totals, "nginx");
            prop_assert!(now >= last, "{now} after {last}");
            prop_assert!(is_damaged || now == truth, "{now} instead of {truth}");
            last = now;
        }
    }

    #[test]
    fn any_counts_add_up_without_overflow(counts in prop::collection::vec(any::<u64>(), 0..20)) {
        let mut totals = Totals::default();
        for (inode, count) in counts.into_iter().enumerate() {
            let mut page = reading(inode as u64, "nginx", count);
            page.counters[Reason::Alone] = count;
            page.counters[Algorithm::P256Sign].failed = count;
            totals.update(vec![page], &[]);
        }
    }
}

#[test]
fn a_container_that_has_ended_is_forgotten_and_a_program_is_not() {
    let mut totals = Totals::default();
    let mut contained = reading(1, "nginx", 5);
    contained.key.container = "c0ffee".to_owned();
    totals.update(vec![contained.clone(), reading(2, "nginx", 7)], &[]);
    assert_eq!(totals.programs().len(), 2);
    let end = Instant::now();
    totals.update(Vec::new(), &[contained]);
    // Whoever scrapes once a minute gets its last counts.
    totals.forget_containers(end + REMEMBERED / 2);
    assert_eq!(totals.programs().len(), 2);
    totals.forget_containers(Instant::now() + REMEMBERED * 2);
    let left: Vec<_> = totals.programs().keys().collect();
    assert_eq!(left.len(), 1);
    assert!(left[0].container.is_empty());
}
