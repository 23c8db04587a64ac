//! Random event loops (`tests/preload/loops.c`): what a seed says is played stock and accelerated.

use std::collections::BTreeMap;
use std::env;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use hasten_telemetry::Event;
use hasten_tests::program::{EAGER, EVERY_BATCH, Program, Run, SUSPEND_ONLY, Variables};
use tempfile::TempDir;

/// Most of the time of a schedule passes with waiting.
const AT_A_TIME: usize = 6;
const IN_MAKE_TEST: u64 = 120;
const CONNECTIONS: usize = 40;

/// Of all schedules of this process: without any, they would show nothing.
static SUSPENSIONS: AtomicU64 = AtomicU64::new(0);

/// The program, and where its keys are: made once, as an RSA key takes longer than a schedule.
struct Loops {
    program: Program,
    keys: TempDir,
}

/// What became of a seed.
#[derive(Debug)]
enum Verdict {
    Same,
    /// Stock runs differ from each other.
    Moody,
    Differs(String),
}

fn loops() -> &'static Loops {
    static LOOPS: OnceLock<Loops> = OnceLock::new();
    LOOPS.get_or_init(|| {
        let keys = tempfile::Builder::new().prefix("hasten-loops-").tempdir().expect("a directory for keys");
        let program = Program::named("loops");
        let _ = program.stock(&["keys", &keys.path().display().to_string()]).succeeded();
        Loops { program, keys }
    })
}

impl Loops {
    fn arguments(&self, seed: u64, connections: usize, habits: &str) -> [String; 4] {
        [seed.to_string(), self.keys.path().display().to_string(), connections.to_string(), habits.to_owned()]
    }

    /// Plays it both ways.
    fn judge(&self, seed: u64, connections: usize, habits: &str, variables: Variables) -> Verdict {
        let arguments = self.arguments(seed, connections, habits);
        let arguments = arguments.each_ref().map(String::as_str);
        let stock = || self.program.stock(&arguments);
        let expected = stock();
        let outcome = self.program.preloaded(&arguments, variables);
        SUSPENSIONS.fetch_add(outcome.counters[Event::Suspended], Relaxed);
        if outcome.output == expected.output && outcome.status == expected.status {
            return Verdict::Same;
        }
        if (0..3).map(|_| stock()).any(|again| again.output != expected.output) {
            return Verdict::Moody;
        }
        Verdict::Differs(self.report(&arguments, variables, &expected, &outcome))
    }

    /// What differs, and the commands that show it again.
    fn report(&self, arguments: &[&str; 4], variables: Variables, expected: &Run, outcome: &Run) -> String {
        let program = self.program.path().display();
        let [seed, _, connections, habits] = arguments;
        let variables: Vec<_> = variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let differing: Vec<_> = outcome
            .output
            .iter()
            .filter(|line| !expected.output.contains(line))
            .take(6)
            .map(|line| format!("\n  {line}"))
            .collect();
        format!(
            "seed {seed}: {}, {} of {} lines{}\n{}replay: {program} keys /tmp </dev/null; LD_PRELOAD={} {} {program} \
             {seed} /tmp {connections} '{habits}' </dev/null",
            outcome.status,
            outcome.output.len(),
            expected.output.len(),
            differing.concat(),
            outcome.errors.lines().take(6).map(|line| format!("  {line}\n")).collect::<String>(),
            hasten_tests::product::library().display(),
            variables.join(" "),
        )
    }
}

/// Every handshake suspended and batched; or suspended and not batched; or as it comes.
fn variables_of(seed: u64) -> Variables<'static> {
    match seed % 3 {
        0 => &[EAGER, EVERY_BATCH],
        1 => &[EAGER, SUSPEND_ONLY],
        _ => &[EVERY_BATCH],
    }
}

/// Plays seeds until there are no more, or time is up.
fn play(seeds: std::ops::Range<u64>, until: Option<Instant>) -> BTreeMap<u64, Verdict> {
    let next = AtomicU64::new(seeds.start);
    let verdicts = Mutex::new(BTreeMap::new());
    let is_time = || until.is_none_or(|until| Instant::now() < until);
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some(seed) =
                    Some(next.fetch_add(1, Relaxed)).filter(|seed| seeds.contains(seed) && is_time())
                {
                    let verdict = loops().judge(seed, CONNECTIONS, "", variables_of(seed));
                    if let Verdict::Differs(report) = &verdict {
                        eprintln!("{report}");
                    }
                    verdicts.lock().expect("nobody panics").insert(seed, verdict);
                }
            });
        }
    });
    verdicts.into_inner().expect("nobody panics")
}

fn assert_same(verdicts: &BTreeMap<u64, Verdict>) {
    let differing: Vec<_> = verdicts
        .iter()
        .filter(|(_, verdict)| matches!(verdict, Verdict::Differs(_)))
        .map(|(seed, _)| seed)
        .collect();
    let moody = verdicts.values().filter(|verdict| matches!(verdict, Verdict::Moody)).count();
    let suspended = SUSPENSIONS.load(Relaxed);
    eprintln!("{} schedules, {suspended} suspensions, {moody} differ without the library", verdicts.len());
    assert!(differing.is_empty(), "of {} schedules these differ: {differing:?}", verdicts.len());
    assert!(
        moody * 20 <= verdicts.len(),
        "{moody} of {} schedules differ without the library",
        verdicts.len()
    );
    assert!(suspended > verdicts.len() as u64, "only {suspended} suspensions: this shows nothing");
}

#[test]
fn random_event_loops() {
    assert_same(&play(0..IN_MAKE_TEST, None));
}

#[test]
#[ignore = "takes as long as one wants: `make zoo` runs it"]
fn random_event_loops_for_long() {
    let setting = |name: &str| env::var(name).ok().map(|text| text.parse().expect("a number"));
    let seconds = setting("ZOO_SECONDS").unwrap_or(3600);
    let first = setting("ZOO_SEED").unwrap_or(1000);
    assert_same(&play(first..u64::MAX, Some(Instant::now() + Duration::from_secs(seconds))));
}

/// One habit alone: certain to be seen in every connection (`+`), or now and then (`~`), where a loop that always has
/// it would never see a handshake suspended.
fn same_with(habits: &str) {
    let connections = if habits.contains('~') { 400 } else { 100 };
    for (seed, variables) in [(1, &[EAGER, EVERY_BATCH]), (2, &[EAGER, SUSPEND_ONLY])] {
        match loops().judge(seed, connections, habits, variables) {
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
