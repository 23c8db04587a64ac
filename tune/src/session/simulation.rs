//! Sessions with a service that exists only as numbers: how often they are right, and how often they find what is not
//! there.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use fastrand::Rng;

use super::*;
use crate::measure::{Bytes, Counter, Measurement, Outcome};
use crate::space::Dimension;

/// Realistic noise: log-normal, most of it between starts.
#[derive(Clone, Copy, Debug)]
struct Weather {
    /// From start to start.
    starts: f64,
    /// Within a load.
    loads: f64,
    /// The machine slows down by this share per hour, and swings by half of it every ten minutes.
    drift: f64,
    /// The share of disturbed measurements, by up to half.
    outliers: f64,
}

const CALM: Weather = Weather { starts: 0.012, loads: 0.008, drift: 0.0, outliers: 0.0 };
const DRIFTING: Weather = Weather { drift: 0.3, ..CALM };
const STORMY: Weather = Weather { starts: 0.02, loads: 0.01, drift: 0.1, outliers: 0.06 };

struct Simulated<'a> {
    /// The logarithm of a candidate's gain, or what is wrong with it.
    model: &'a dyn Fn(&Candidate) -> Result<f64, Disqualified>,
    weather: Weather,
    random: Rng,
    clock: Rc<Cell<Duration>>,
    /// Ends the session after this many measurements.
    patience: usize,
    seconds: f64,
    size: Option<Size>,
}

/// The size of answers with a candidate, and their random variation, as a share.
type Size = (fn(&Candidate) -> f64, f64);

#[derive(Debug)]
struct Impatient;

impl Subject for Simulated<'_> {
    type Stop = Impatient;

    fn measure(&mut self, candidate: &Candidate) -> Result<Outcome, Impatient> {
        self.patience = self.patience.checked_sub(1).ok_or(Impatient)?;
        let seconds = self.seconds * (1.0 + 0.1 * self.random.f64());
        self.clock.set(self.clock.get() + Duration::from_secs_f64(seconds));
        Ok(match (self.model)(candidate) {
            Ok(gain) => {
                let bytes = self.bytes(candidate);
                Outcome::Measured(Measurement { bytes, ..self.measurement(gain) })
            }
            Err(reason) => Outcome::Disqualified(reason),
        })
    }
}

impl Simulated<'_> {
    fn measurement(&mut self, gain: f64) -> Measurement {
        let Weather { starts, loads, drift, outliers } = self.weather;
        let minutes = self.clock.get().as_secs_f64() / 60.0;
        let swing = drift * (minutes / 60.0 + 0.5 * (minutes / 10.0 * std::f64::consts::TAU).sin());
        let disturbed = if self.random.f64() < outliers { 0.5 * self.random.f64() } else { 0.0 };
        let noise = starts * self.normal() + loads * self.normal() + swing + disturbed;
        Measurement {
            requests: 10_000.0,
            seconds: 5.0,
            cpu_seconds: 4.0 * (noise - gain).exp(),
            peak_rss_bytes: 50_000_000,
            latency: None,
            metric: None,
            bytes: None,
        }
    }

    fn bytes(&mut self, candidate: &Candidate) -> Option<Bytes> {
        let (size, spread) = self.size?;
        let per_request = size(candidate) * (spread * self.normal()).exp();
        Some(Bytes { per_request, rounding: 0.0, by: Counter::Load })
    }

    /// The Box–Muller transform.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.random.f64()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.random.f64()).cos()
    }
}

#[derive(Default)]
struct Quiet {
    remarks: Vec<String>,
    tried: usize,
}

impl Watcher for Quiet {
    fn phase(&mut self, _: Phase, _: &str) {}
    fn trying(&mut self, _: &Status<'_>) {}
    fn tried(&mut self, _: &Trial) {
        self.tried += 1;
    }
    fn note(&mut self, _: &str) {}
    fn remark(&mut self, line: &str) {
        self.remarks.push(line.to_owned());
    }
}

fn space(levels: &[usize]) -> Space {
    let dimension = |(index, &count): (usize, &usize)| Dimension {
        name: format!("knob-{index}"),
        levels: (0..count).map(|level| level.to_string()).collect(),
        ordered: false,
    };
    Space { dimensions: levels.iter().enumerate().map(dimension).collect(), order: Vec::new() }
}

struct Session {
    /// The clock at the beginning of the first measurement.
    before: Duration,
    settings: Settings,
    weather: Weather,
    patience: usize,
    /// The duration of a measurement.
    seconds: f64,
    size: Option<Size>,
}

impl Session {
    fn new(minutes: u64, weather: Weather, seed: u64) -> Self {
        let settings = Settings {
            budget: Duration::from_secs(60 * minutes),
            effect: 0.03,
            seed,
            objective: Objective::cpu(),
            constraints: Constraints::default(),
        };
        Self { before: Duration::ZERO, settings, weather, patience: usize::MAX, seconds: 8.0, size: None }
    }

    fn run(
        &self,
        space: &Space,
        model: &dyn Fn(&Candidate) -> Result<f64, Disqualified>,
        record: &mut Record,
    ) -> (Findings, Option<Halt<Impatient>>, Duration) {
        let clock = Rc::new(Cell::new(self.before));
        let random = Rng::with_seed(self.settings.seed ^ 0x5eed);
        let mut subject = Simulated {
            model,
            weather: self.weather,
            random,
            clock: Rc::clone(&clock),
            patience: self.patience,
            seconds: self.seconds,
            size: self.size,
        };
        let now = move || clock.get();
        let (findings, halt) = run(space, &self.settings, &mut subject, record, &now, &mut Quiet::default());
        let spent = findings.trials.iter().map(|trial| trial.seconds).sum();
        (findings, halt, Duration::from_secs_f64(spent))
    }
}

/// +12 %, −8 %, nulls, one that corrupts, and two that gain 7 % each but no more together.
const PLANTED: [usize; 9] = [2, 2, 2, 3, 2, 2, 2, 2, 2];
const GOOD: usize = 0;
const BAD: usize = 1;
const CORRUPTOR: usize = 4;
const TWINS: [usize; 2] = [5, 6];

fn planted(candidate: &Candidate) -> Result<f64, Disqualified> {
    let set = |knob: usize| candidate.0[knob] > 0;
    if set(CORRUPTOR) {
        return Err(Disqualified::ChangedAnswer { what: "another body".to_owned() });
    }
    let effect = |knob: usize, percent: f64| if set(knob) { (percent / 100.0).ln_1p() } else { 0.0 };
    let twin = TWINS.iter().any(|&knob| set(knob));
    Ok(effect(GOOD, 12.0) + effect(BAD, -8.0) + if twin { 0.07_f64.ln_1p() } else { 0.0 })
}

#[test]
fn planted_effects_are_found_within_the_budget() {
    let space = space(&PLANTED);
    let (sessions, minutes) = (40, 25);
    let (mut good, mut twin, mut both, mut wrong) = (0, 0, 0, 0);
    for seed in 0..sessions {
        let session = Session::new(minutes, CALM, seed);
        let (findings, halt, spent) = session.run(&space, &planted, &mut Record::default());
        assert!(halt.is_none(), "{halt:?}");
        assert!(spent <= session.settings.budget, "{spent:?}");
        let corruptor = &findings.screened.iter().find(|screened| screened.knob == CORRUPTOR).unwrap().fate;
        assert!(matches!(corruptor, Fate::Disqualified { .. }), "{corruptor:?}");
        let Some((kept, _)) = findings.proven() else { continue };
        good += usize::from(kept.0[GOOD] == 1);
        let twins = TWINS.iter().filter(|&&knob| kept.0[knob] == 1).count();
        twin += usize::from(twins == 1);
        both += usize::from(twins == 2);
        wrong += kept.set().filter(|(knob, _)| *knob != GOOD && !TWINS.contains(knob)).count();
    }
    println!("of {sessions}: +12 % kept {good}, one twin {twin}, both {both}, wrong ones {wrong}");
    assert!(good >= 38, "the knob of +12 % was kept in {good} of {sessions}");
    assert!(twin >= 33, "one of two that do the same was kept in {twin} of {sessions}");
    assert!(both <= 2, "both were kept in {both} of {sessions}");
    assert!(wrong <= 1, "null or harmful knobs were kept in {wrong} of {sessions}");
}

/// Two knobs that gain 5 % each, and 22 % together, among six that do nothing.
fn better_together(candidate: &Candidate) -> Result<f64, Disqualified> {
    Ok(match (candidate.0[1], candidate.0[4]) {
        (1, 1) => 0.22_f64.ln_1p(),
        (0, 0) => 0.0,
        _ => 0.05_f64.ln_1p(),
    })
}

#[test]
fn knobs_that_help_more_together_than_alone_are_found_together() {
    let (sessions, mut found) = (20, 0);
    for seed in 0..sessions {
        let (findings, halt, _) =
            Session::new(25, CALM, seed).run(&space(&[2; 8]), &better_together, &mut Record::default());
        assert!(halt.is_none(), "{halt:?}");
        let both = |kept: &Candidate| kept.0 == [0, 1, 0, 0, 1, 0, 0, 0];
        found += usize::from(findings.proven().is_some_and(|(kept, _)| both(kept)));
    }
    println!("of {sessions}: both, and nothing else, in {found}");
    assert!(found >= 17, "both were kept in {found} of {sessions}");
}

#[test]
fn what_noise_leaves_open_is_not_called_ruled_out() {
    const ROUGH: Weather = Weather { starts: 0.08, loads: 0.05, drift: 0.0, outliers: 0.0 };
    let run = |weather| {
        let session = Session::new(40, weather, 5);
        session.run(&space(&[2, 2, 2]), &|_| Ok(0.0), &mut Record::default()).0.screened
    };
    assert!(run(CALM).iter().filter(|screened| screened.ruled_out).count() >= 2);
    let rough = run(ROUGH);
    assert!(rough.iter().any(|screened| !screened.ruled_out), "{rough:?}");
    assert!(rough.iter().any(|screened| screened.pairs.len() > 12), "time that is left is used");
}

/// 200 sessions with useless knobs.
fn false_positives(weather: Weather) -> usize {
    let space = space(&[2, 2, 4, 3, 2, 3, 2, 2, 4, 2]);
    let kept = |seed: &u64| {
        let session = Session::new(15, weather, *seed);
        let (findings, halt, _) = session.run(&space, &|_| Ok(0.0), &mut Record::default());
        assert!(halt.is_none(), "{halt:?}");
        findings.proven().is_some()
    };
    (0..200).filter(kept).count()
}

#[test]
fn of_200_sessions_without_any_effect_at_most_5_percent_keep_a_knob() {
    for (name, weather) in [("calm", CALM), ("drift", DRIFTING), ("outliers", STORMY)] {
        let kept = false_positives(weather);
        println!("{name}: {kept} of 200 sessions without any effect keep a knob");
        assert!(kept <= 10, "{name}: {kept} of 200");
    }
}

#[test]
fn a_session_that_was_stopped_goes_on_as_if_it_had_not_been() {
    let space = space(&PLANTED);
    let session = Session::new(25, CALM, 3);
    let whole = session.run(&space, &planted, &mut Record::default()).0;
    let mut record = Record::default();
    let stopped = Session { patience: 60, ..Session::new(25, CALM, 3) };
    let (first, halt, _) = stopped.run(&space, &planted, &mut record);
    assert!(matches!(halt, Some(Halt::Stopped(Impatient))));
    assert_eq!(first.conclusion, Conclusion::Unfinished);
    assert_eq!(record.len(), 60);
    let (second, halt, spent) = session.run(&space, &planted, &mut record.again());
    assert!(halt.is_none());
    assert_eq!(second.trials[..60], whole.trials[..60]);
    assert!(spent <= session.settings.budget);
    assert_eq!(second.proven().unwrap().0.0[GOOD], 1);
}

#[test]
fn a_record_of_something_else_is_refused() {
    let mut record = Record::default();
    Session { patience: 40, ..Session::new(25, CALM, 3) }.run(&space(&PLANTED), &planted, &mut record);
    let other = Session::new(25, CALM, 4).run(&space(&PLANTED), &planted, &mut record.again());
    assert!(matches!(other.1, Some(Halt::Record(RecordError::Diverged { .. }))), "{:?}", other.1);
}

#[test]
fn a_budget_that_proves_nothing_is_refused() {
    let (findings, halt, _) =
        Session::new(2, CALM, 1).run(&space(&PLANTED), &planted, &mut Record::default());
    assert!(matches!(halt, Some(Halt::TooShort { needed, .. }) if needed > 120.0), "{halt:?}");
    assert_eq!(findings.trials.len(), 1);
}

#[test]
fn what_went_before_the_first_measurement_is_a_part_of_the_budget() {
    let mut session = Session::new(10, CALM, 1);
    session.before = Duration::from_secs(240);
    let good = |candidate: &Candidate| Ok(0.12 * candidate.0[0] as f64);
    let (findings, halt, spent) = session.run(&space(&[2, 2]), &good, &mut Record::default());
    assert!(halt.is_none(), "{halt:?}");
    assert!(findings.proven().is_some() && spent + session.before <= session.settings.budget);
}

#[test]
fn what_time_is_too_short_for_is_not_tried_and_said() {
    let levels = [2; 60];
    let (findings, ..) = Session::new(10, CALM, 1).run(&space(&levels), &|_| Ok(0.0), &mut Record::default());
    let untried = findings.screened.iter().filter(|screened| screened.fate == Fate::NotTried).count();
    assert!((10..60).contains(&untried), "{untried}");
}

#[test]
fn time_that_nobody_needs_goes_to_what_waits_for_it() {
    // All 40 at once are too many; most of them drop out after two rounds. The last one is worth it.
    let last = |candidate: &Candidate| Ok(if candidate.0[39] == 1 { 0.12 } else { 0.0 });
    let mut session = Session::new(30, CALM, 1);
    let (findings, _, used) = session.run(&space(&[2; 40]), &last, &mut Record::default());
    assert_eq!(findings.screened[39].fate, Fate::Kept, "{:?}", findings.conclusion);
    assert!(findings.proven().is_some() && used <= session.settings.budget);
    // If there is nothing to find, the time set aside for combinations is not wasted while others wait.
    session.settings.budget = Duration::from_secs(60 * 12);
    let (findings, _, used) = session.run(&space(&[2; 60]), &|_| Ok(0.0), &mut Record::default());
    assert!(findings.screened.iter().any(|screened| screened.fate == Fate::NotTried));
    assert!(used > session.settings.budget.mul_f64(0.95) && used <= session.settings.budget, "{used:?}");
}

#[test]
fn what_was_measured_in_a_round_that_was_stopped_is_not_lost() {
    let space = space(&[2; 19]);
    for patience in [24, 28, 33, 40] {
        let session = Session { patience, ..Session::new(25, CALM, 1) };
        let (findings, halt, _) = session.run(&space, &|_| Ok(0.0), &mut Record::default());
        assert!(matches!(halt, Some(Halt::Stopped(_))), "{halt:?}");
        let is_setting =
            |trial: &&Trial| trial.phase == Phase::Screen && trial.candidate.set().next().is_some();
        let measured = findings.trials.iter().filter(is_setting).count();
        let known = findings.screened.iter().filter(|one| one.pairs.len() == 1);
        assert_eq!(known.count(), measured, "after {patience} measurements");
        let untried = findings.screened.iter().filter(|one| one.fate == Fate::NotTried).count();
        assert_eq!(untried, 19 - measured, "after {patience} measurements");
    }
}

#[test]
fn the_budget_that_would_suffice_does() {
    let space = space(&[2; 19]);
    let short = Session { patience: 15, ..Session::new(5, CALM, 1) };
    let (findings, ..) = short.run(&space, &|_| Ok(0.0), &mut Record::default());
    let enough = sufficient(&space, &short.settings, &findings.trials).unwrap();
    assert!(enough > short.settings.budget, "{enough:?}");
    let mut long = Session::new(5, CALM, 1);
    long.settings.budget = enough;
    let (findings, halt, _) = long.run(&space, &|_| Ok(0.0), &mut Record::default());
    assert!(halt.is_none(), "{halt:?}");
    assert!(findings.screened.iter().all(|one| one.pairs.len() >= 2), "{enough:?}");
    assert_eq!(sufficient(&space, &short.settings, &[]), None);
}

#[test]
fn a_service_that_fails_by_itself_ends_the_session() {
    let fails = |_: &Candidate| Err(Disqualified::Crashed { what: "exit code 1".to_owned() });
    let (findings, halt, _) = Session::new(25, CALM, 1).run(&space(&[2]), &fails, &mut Record::default());
    assert!(matches!(halt, Some(Halt::Baseline(_))), "{halt:?}");
    assert_eq!(findings.trials.len(), 3);
}

#[test]
fn without_time_for_ablation_one_knob_is_proposed() {
    let both = |candidate: &Candidate| Ok(0.1 * candidate.set().count() as f64);
    let (findings, ..) = Session::new(6, CALM, 1).run(&space(&[2, 2]), &both, &mut Record::default());
    assert_eq!(findings.proven().map(|(kept, _)| kept.set().count()), Some(1), "{:?}", findings.conclusion);
}

#[test]
fn a_limit_disqualifies_a_candidate_and_not_the_service() {
    let mut session = Session::new(25, CALM, 1);
    session.settings.constraints.max_rss_bytes = Some(1_000_000);
    let (findings, halt, _) = session.run(&space(&[2, 2]), &planted_pair, &mut Record::default());
    assert!(halt.is_none());
    assert!(findings.screened.iter().all(|screened| matches!(screened.fate, Fate::Disqualified { .. })));
    assert_eq!(findings.conclusion, Conclusion::NothingHelps);
}

fn planted_pair(candidate: &Candidate) -> Result<f64, Disqualified> {
    Ok(0.1 * candidate.0[0] as f64)
}

/// As long as a session on an app with a load of three seconds: 24 settings, and four minutes.
fn short(seed: u64) -> Session {
    Session { before: Duration::from_secs(25), seconds: 5.0, ..Session::new(4, CALM, seed) }
}

#[test]
fn four_minutes_are_enough_for_a_look_at_most_of_24_settings() {
    let mut all = 0;
    for seed in 0..10 {
        let session = short(seed);
        let (findings, halt, spent) = session.run(&space(&[2; 24]), &|_| Ok(0.0), &mut Record::default());
        assert!(halt.is_none(), "{halt:?}");
        let tried = findings.screened.iter().filter(|screened| !screened.pairs.is_empty()).count();
        assert!(tried >= 9, "{tried} of 24");
        all += tried;
        let left = session.settings.budget - session.before - spent;
        assert!(left < Duration::from_secs(20), "{left:?} are left, and settings are open");
    }
    println!("{:.1} of 24 settings on average", f64::from(u32::try_from(all).unwrap()) / 10.0);
    assert!(all >= 120, "{all} in ten sessions");
}

#[test]
fn what_is_expected_to_help_is_tried_first_and_proven_in_four_minutes() {
    let gain = |candidate: &Candidate| Ok(if candidate.0[20] == 1 { 0.12 } else { 0.0 });
    let with_order = |order: Vec<(usize, usize)>| {
        let space = Space { order, ..space(&[2; 24]) };
        let is_proven = |seed: &u64| {
            let findings = short(*seed).run(&space, &gain, &mut Record::default()).0;
            findings.proven().is_some_and(|(kept, _)| kept.0[20] == 1)
        };
        (0..20).filter(is_proven).count()
    };
    let (first, last) = (with_order(vec![(20, 1)]), with_order(Vec::new()));
    println!("of 20: {first} where it is tried first, {last} where it is the 21st");
    assert!(first >= 17 && last < first, "{first} and {last} of 20");
}

#[test]
fn a_gain_as_large_as_was_asked_for_is_hardly_ever_called_ruled_out() {
    let gain = |candidate: &Candidate| Ok(if candidate.0[3] == 1 { 0.03_f64.ln_1p() } else { 0.0 });
    for (name, weather) in [("calm", CALM), ("drift", DRIFTING), ("outliers", STORMY)] {
        let wrong = |seed: &u64| {
            let session = Session::new(15, weather, *seed);
            let findings = session.run(&space(&[2; 8]), &gain, &mut Record::default()).0;
            findings.screened.iter().any(|screened| screened.knob == 3 && screened.ruled_out)
        };
        let wrong = (0..200).filter(wrong).count();
        println!("{name}: a gain of 3 % is called ruled out in {wrong} of 200 sessions");
        assert!(wrong <= 20, "{name}: {wrong} of 200");
    }
}

const HALF_THE_CPU: usize = 1;

/// Halves the CPU and makes answers 8 % longer.
fn bargain(candidate: &Candidate) -> f64 {
    if candidate.0[HALF_THE_CPU] == 1 { 1080.0 } else { 1000.0 }
}

#[test]
fn what_makes_answers_longer_is_out_whatever_it_saves() {
    let cheaper = |candidate: &Candidate| Ok(if candidate.0[HALF_THE_CPU] == 1 { 0.7 } else { 0.0 });
    let mut session = Session { size: Some((bargain, 0.0)), ..Session::new(15, CALM, 1) };
    session.settings.constraints.max_growth = Some(0.01);
    let findings = session.run(&space(&[2; 3]), &cheaper, &mut Record::default()).0;
    let screened = findings.screened.iter().find(|screened| screened.knob == HALF_THE_CPU).unwrap();
    assert!(matches!(screened.fate, Fate::Disqualified { .. }), "{:?}", screened.fate);
    assert_eq!((screened.pairs.len(), findings.proven()), (1, None), "one look is enough");
    // A user who accepts that may have it.
    session.settings.constraints.max_growth = None;
    let findings = session.run(&space(&[2; 3]), &cheaper, &mut Record::default()).0;
    assert_eq!(findings.proven().map(|(kept, _)| kept.0[HALF_THE_CPU]), Some(1));
    assert!((findings.rechecks[0].growth.unwrap().ratio.value - 1.08).abs() < 1e-6);
}

#[test]
fn answers_that_differ_in_length_by_chance_fail_nobody() {
    let good = |candidate: &Candidate| Ok(if candidate.0[0] == 1 { 0.12 } else { 0.0 });
    let (mut kept, mut out) = (0, 0);
    for seed in 0..60 {
        let mut session = Session { size: Some((|_| 1000.0, 0.04)), ..Session::new(15, CALM, seed) };
        session.settings.constraints.max_growth = Some(0.01);
        let findings = session.run(&space(&[2; 10]), &good, &mut Record::default()).0;
        let is_out = |screened: &&Screened| matches!(screened.fate, Fate::Disqualified { .. });
        out += findings.screened.iter().filter(is_out).count();
        kept += usize::from(findings.proven().is_some_and(|(kept, _)| kept.0[0] == 1));
    }
    println!("of 600 settings {out} are out by chance; of 60 sessions {kept} keep the good one");
    assert!(out <= 6 && kept >= 57, "{out} out, {kept} kept");
}
