//! Random event loops (`tests/preload/loops.c`): each seed's schedule is played stock and accelerated.

use std::collections::BTreeMap;
use std::env;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use hasten_tests::program::{EAGER, EVERY_BATCH, Program, SUSPEND_ONLY, Variables};
use hasten_tests::{effort, product};

use crate::loops::{Played, Series, Terms, loops};

/// A schedule spends most of its time waiting.
const AT_A_TIME: usize = 8;
/// How many seeds are played, and how many in `make thorough`.
const SEEDS: [u64; 2] = [300, 2000];
const DELAYED_SEEDS: [u64; 2] = [80, 300];
const FIRST_DELAYED: u64 = 5000;
/// As many connections in a round as there are clients at a time.
const FEW: Terms = Terms { connections: 8, habits: "" };
/// In `make zoo` each client comes back several times in a round, and each schedule has a process of its own.
const MANY: Terms = Terms { connections: 40, habits: "" };
/// Callbacks that run after the point where a handshake could be suspended. They prevent that, as they must.
const CALLBACKS: [&str; 6] = ["info", "info-chain", "msg", "keylog", "ticket-callback", "verify-callback"];

/// Every handshake suspended and batched; or suspended and not batched; or as it happens.
const VARIANTS: [Variables; 3] = [&[EAGER, EVERY_BATCH], &[EAGER, SUSPEND_ONLY], &[EVERY_BATCH]];
const AS_IT_COMES: usize = 2;

/// The outcome of a seed, and the results of its accelerated run.
#[derive(Debug)]
struct Judged {
    verdict: Verdict,
    accelerated: Played,
}

#[derive(Debug)]
enum Verdict {
    Same,
    /// Stock runs differ from each other.
    Moody,
    Differs(String),
}

/// Most are eager: otherwise threads are watched for longer than most schedules last.
fn variant_of(seed: u64) -> usize {
    match seed % 8 {
        0..=3 => 0,
        4..=6 => 1,
        _ => AS_IT_COMES,
    }
}

/// Compares both ways of playing it; if stock runs differ from each other, nothing is shown.
fn judge(
    seed: u64,
    terms: Terms,
    variables: Variables,
    mut stock: impl FnMut() -> Played,
    accelerated: Played,
) -> Judged {
    let expected = stock();
    let verdict = if accelerated.output == expected.output {
        Verdict::Same
    } else if (0..3).map(|_| stock()).any(|again| again.output != expected.output) {
        Verdict::Moody
    } else {
        let report = loops().report(seed, terms, variables, [&expected, &accelerated]);
        eprintln!("{report}");
        Verdict::Differs(report)
    };
    Judged { verdict, accelerated }
}

/// In separate processes.
fn judge_alone(seed: u64, terms: Terms, variables: Variables) -> Judged {
    let accelerated = loops().play(seed, terms, Some(variables));
    judge(seed, terms, variables, || loops().play(seed, terms, None), accelerated)
}

/// A stock series, and an accelerated one for each variant.
struct Table {
    stock: Series,
    accelerated: [Series; 3],
}

impl Table {
    fn new() -> Self {
        let accelerated = VARIANTS.map(|variables| loops().series(FEW, Some(variables)));
        Self { stock: loops().series(FEW, None), accelerated }
    }

    fn judge(&mut self, seed: u64) -> Judged {
        let variant = variant_of(seed);
        let accelerated = self.accelerated[variant].play(seed);
        judge(seed, FEW, VARIANTS[variant], || self.stock.play(seed), accelerated)
    }
}

/// Plays seeds until none are left or the time is up; each thread has its own player.
fn play<P: FnMut(u64) -> Judged>(
    seeds: Range<u64>,
    until: Option<Instant>,
    player: impl Fn() -> P + Sync,
) -> BTreeMap<u64, Judged> {
    let next = AtomicU64::new(seeds.start);
    let judged = Mutex::new(BTreeMap::new());
    let is_time = || until.is_none_or(|until| Instant::now() < until);
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                let mut player = player();
                while let Some(seed) =
                    Some(next.fetch_add(1, Relaxed)).filter(|seed| seeds.contains(seed) && is_time())
                {
                    let outcome = player(seed);
                    judged.lock().expect("nobody panics").insert(seed, outcome);
                }
            });
        }
    });
    judged.into_inner().expect("nobody panics")
}

fn assert_same(judged: &BTreeMap<u64, Judged>) {
    let differing: Vec<_> = judged
        .iter()
        .filter(|(_, judged)| matches!(judged.verdict, Verdict::Differs(_)))
        .map(|(seed, _)| seed)
        .collect();
    let moody = judged.values().filter(|judged| matches!(judged.verdict, Verdict::Moody)).count();
    let all = judged.len();
    eprintln!("{all} schedules, {moody} differ without the library");
    assert!(differing.is_empty(), "of {all} schedules these differ: {differing:?}");
    assert!(moody * 20 <= all, "{moody} of {all} schedules differ without the library");
}

/// A schedule without suspensions shows little: some habits forbid them, but there must not be too many.
fn assert_suspended(judged: &BTreeMap<u64, Judged>) {
    let sum: u64 = judged.values().map(|judged| judged.accelerated.suspended).sum();
    let suspending =
        |judged: &[&Judged]| judged.iter().filter(|judged| judged.accelerated.suspended > 0).count();
    let all: Vec<_> = judged.values().collect();
    let free: Vec<_> =
        judged.iter().filter(|(seed, judged)| is_free(**seed, judged)).map(|(_, judged)| judged).collect();
    let (of_all, of_free) = (suspending(&all), suspending(&free));
    eprintln!(
        "{sum} suspensions, in {of_all} of {} schedules, and in {of_free} of the {} that have no reason against it",
        all.len(),
        free.len()
    );
    assert!(of_all * 5 > all.len() * 2, "too few schedules suspend handshakes to show anything");
    assert!(
        of_free * 5 > free.len() * 3,
        "too few schedules suspend handshakes, though nothing keeps them from it"
    );
}

/// Its handshakes may be suspended, unless their thread sleeps outside epoll.
fn is_free(seed: u64, judged: &Judged) -> bool {
    variant_of(seed) != AS_IT_COMES && judged.accelerated.habits.iter().any(|habit| habit == "quiet")
}

/// Every habit has occurred, and all but those that forbid it where handshakes were suspended.
fn assert_covered(judged: &BTreeMap<u64, Judged>) {
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for Judged { accelerated, .. } in judged.values() {
        for habit in &accelerated.habits {
            let counts = accelerated.suspended > 0 || CALLBACKS.contains(&habit.as_str());
            *seen.entry(habit).or_default() += u32::from(counts);
        }
    }
    eprintln!("schedules with each habit: {seen:?}");
    // Rare ones are in one of fifty schedules.
    let fewest = effort(1, 10);
    for habit in loops().habits() {
        assert!(
            seen.get(habit.as_str()).is_some_and(|seen| *seen >= fewest),
            "{habit} is hardly ever seen: {seen:?}"
        );
    }
}

#[test]
fn random_event_loops() {
    let judged = play(0..effort(SEEDS[0], SEEDS[1]), None, || {
        let mut table = Table::new();
        move |seed| table.judge(seed)
    });
    assert_same(&judged);
    assert_suspended(&judged);
    assert_covered(&judged);
}

/// Another preloaded library slows calls down, so that rare interleavings between two calls of a thread become
/// frequent; or it blocks in them where the library under test has made the call itself.
fn judge_delayed(seed: u64, terms: Terms) -> Judged {
    let delays = Program::with_flags("delays", &["-O1", "-shared", "-fPIC"]);
    let both = format!("{} {}", product::library().display(), delays.path().display());
    let longest = ["300", "3000", "15000"][seed as usize % 3];
    let mut variables = VARIANTS[variant_of(seed)].to_vec();
    variables.extend([("LD_PRELOAD", both.as_str()), ("DELAYS_US", longest)]);
    if seed.is_multiple_of(5) {
        variables.push(("DELAYS_BY_LIBRARY", "1"));
    }
    judge_alone(seed, terms, &variables)
}

#[test]
fn random_event_loops_with_delays() {
    let count = effort(DELAYED_SEEDS[0], DELAYED_SEEDS[1]);
    let judged = play(FIRST_DELAYED..FIRST_DELAYED + count, None, || |seed| judge_delayed(seed, FEW));
    assert_same(&judged);
    assert_suspended(&judged);
}

#[test]
#[ignore = "takes as long as one wants: `make zoo` runs it"]
fn random_event_loops_for_long() {
    let setting = |name: &str| env::var(name).ok().map(|text| text.parse().expect("a number"));
    let seconds = setting("ZOO_SECONDS").unwrap_or(3600);
    let first = setting("ZOO_SEED").unwrap_or(100_000);
    let until = Instant::now() + Duration::from_secs(seconds);
    let judged = play(first..u64::MAX, Some(until), || {
        |seed| match seed / 8 % 2 {
            0 => judge_alone(seed, MANY, VARIANTS[variant_of(seed)]),
            _ => judge_delayed(seed, MANY),
        }
    });
    assert_same(&judged);
    assert_suspended(&judged);
}

/// One habit alone: on every connection (`+`), or occasionally (`~`) if a loop that always has it would never see a
/// handshake suspended.
fn same_with(habits: &str) {
    let connections = if habits.contains('~') { effort(160, 400) } else { effort(40, 100) };
    for (seed, variables) in [(1, VARIANTS[0]), (2, VARIANTS[1])] {
        match judge_alone(seed, Terms { connections, habits }, variables).verdict {
            Verdict::Same => {}
            Verdict::Moody => panic!("{habits}: stock runs differ from each other"),
            Verdict::Differs(report) => panic!("{report}"),
        }
    }
}

macro_rules! habits {
    ($($name:ident => $habits:literal)+) => {
        $(#[test] fn $name() { same_with(concat!("-,", $habits)); })+
    };
}

habits! {
    begun_by_accept_and_finished_by_read_in_tls_1_2 => "+by-read,+old"
    finished_by_peek => "+by-peek,+old"
    finished_by_write => "+by-write,+old"
    a_child_of_vfork_closes_what_it_inherits => "~vfork"
    children => "+fork"
    children_that_free_what_they_inherit => "+fork-and-free"
    moved_to_another_thread => "+move,+threads"
    handed_to_another_thread => "+move,+move-by-queue,+threads"
    finished_in_poll => "~in-poll"
    finished_in_ppoll => "~in-ppoll"
    finished_in_select => "~in-select"
    finished_in_a_blocking_read => "+in-read"
    a_thread_reads_meanwhile => "+await-read"
    a_thread_polls_meanwhile => "+await-poll"
    a_thread_selects_meanwhile => "+await-select"
    a_thread_waits_on_a_condition_meanwhile => "+await-condition"
    a_thread_waits_for_another_meanwhile => "+await-join"
    epoll_inside_epoll => "+nested"
    a_loop_inside_a_loop => "+reenter"
    poll_around_epoll => "+poll"
    select_around_epoll => "+select"
    sleep_around_epoll => "+sleep"
    a_pool_of_threads => "+pool,+threads"
    a_thread_ends_and_another_goes_on => "+succession"
    freed_by_another_thread => "+drop,+drop-elsewhere,+threads"
    an_info_callback_that_passes_on => "+info,+info-chain"
    an_info_callback_of_another_context => "+info,+second-context,+second-name"
    callbacks_deep_in_the_stack => "+deep,+info,+msg,+cert-callback,+alpn,+keylog"
    callbacks_that_ask_to_be_asked_again => "+cert-callback,+retry"
    a_callback_that_signs => "+cert-callback,+sign"
    a_provider_is_loaded_meanwhile => "+provider,+old"
    stacks_of_all_depths => "+recursion,+msg"
    small_stacks => "+small-stacks,+threads,+msg"
}
