use std::time::Duration;

use super::*;
use crate::knob::{Choice, Custom, Knob, LeftOut, Value, registry};
use crate::measure::Disqualified;
use crate::objective::Constraints;

const WANTED: f64 = 0.03;

fn settings() -> Settings {
    Settings {
        budget: Duration::from_secs(900),
        effect: WANTED,
        seed: 1,
        objective: crate::objective::Objective::cpu(),
        constraints: Constraints { max_growth: Some(0.01), ..Constraints::default() },
    }
}

/// Knobs of one level each, and gzip among them.
fn choices() -> Choices {
    let knob = |name: &str| Choice {
        knob: Box::new(format!("{name}=env:{name}=on").parse::<Custom>().unwrap()),
        levels: vec![Value::stock("off"), Value::On],
        promising: true,
    };
    let gzip = registry().iter().find(|knob| knob.name() == "gzip").unwrap();
    let mut knobs = vec![knob("a"), knob("b")];
    knobs.push(Choice { knob: Box::new(*gzip), ..knob("c") });
    let left_out =
        vec![LeftOut { name: "tls".to_owned(), why: "the load opens no TLS connection".to_owned() }];
    Choices { knobs, left_out, by_default: vec!["tls", "gzip"] }
}

fn screened(knob: usize, fate: session::Fate, ruled_out: bool) -> session::Screened {
    let ratio = Some(Estimate { value: 1.0, low: 0.99, high: 1.05 });
    session::Screened { knob, level: 1, pairs: Vec::new(), ratio, growth: None, p: None, ruled_out, fate }
}

fn found(screened: Vec<session::Screened>, conclusion: Conclusion, visible: f64) -> Report {
    let ratio = Estimate { value: 1.0, low: 0.99, high: 1.01 };
    let noise = session::Noise {
        pairs: Vec::new(),
        ratio,
        verdict: hasten_evidence::verdict::Verdict::NoDifference,
        spread: 0.01,
        visible,
    };
    let findings = Findings { noise: Some(noise), screened, conclusion, ..Findings::default() };
    report(&findings, &settings(), &choices(), Circumstances::default())
}

#[test]
fn no_gain_is_said_only_where_one_is_ruled_out() {
    use session::Fate::{Null, Promising};
    let nothing = || Conclusion::NothingHelps;
    let all = vec![screened(0, Null, true), screened(1, Null, true)];
    let report = found(all, nothing(), 0.02);
    assert_eq!(report.verdict, Verdict::NoDifference);
    assert_eq!(report.headline(), "None of 2 settings saves 3.0 % of CPU per request");
    // The noise is small enough, and still the result is open.
    let open =
        vec![screened(0, Null, true), screened(1, Null, false), screened(2, session::Fate::NotTried, false)];
    let report = found(open.clone(), nothing(), 0.02);
    assert_eq!(report.verdict, Verdict::Undecided);
    let headline = "Could not tell whether 1 of 3 settings saves 3.0 % of CPU per request, 1 not tried";
    assert_eq!(report.headline(), headline);
    assert_eq!(found(open, nothing(), 0.2).verdict, Verdict::TooNoisy);
    let unconfirmed = Conclusion::NotConfirmed { candidate: choices().space().baseline().with(0, 1) };
    assert_eq!(found(vec![screened(0, Promising, false)], unconfirmed, 0.02).verdict, Verdict::Undecided);
    let reason = Disqualified::Constraint { what: "too large".to_owned() };
    let out = found(vec![screened(0, session::Fate::Disqualified { reason }, false)], nothing(), 0.02);
    assert_eq!(out.headline(), "Nothing can be kept, 1 disqualified");
    let untried = vec![screened(0, session::Fate::NotTried, false)];
    assert_eq!(found(untried, nothing(), 0.02).verdict, Verdict::Undecided);
}

#[test]
fn a_profile_names_the_accelerators_that_it_keeps_from_being_loaded() {
    let candidate = choices().space().baseline().with(2, 1);
    let ratio = Estimate { value: 1.2, low: 1.1, high: 1.3 };
    let proven = |candidate| Findings {
        conclusion: Conclusion::Proven { candidate, ratio },
        screened: vec![screened(2, session::Fate::Null, false)],
        ..Findings::default()
    };
    let of = |findings: &Findings| missing(findings, &choices(), &settings());
    let [tls] = &of(&proven(candidate))[..] else { panic!("tls alone is missing") };
    assert!(tls.contains("it was not tried (the load opens no TLS connection)"), "{tls}");
    assert!(tls.ends_with("write only = [\"gzip\", \"tls\"]"), "{tls}");
    let both = of(&proven(choices().space().baseline().with(0, 1)));
    assert!(both.len() == 2 && both[1].contains("its verdict is \"undecided\""), "{both:?}");
    assert_eq!(of(&Findings::default()), [""; 0], "without a profile nothing is missing");
}

#[test]
fn a_limit_of_bytes_that_was_not_applied_is_said() {
    let warnings = |counts_bytes| {
        let circumstances = Circumstances { counts_bytes, ..Circumstances::default() };
        report(&Findings::default(), &settings(), &choices(), circumstances).warnings
    };
    assert!(warnings(true)[0].contains("--max-bytes was not applied"));
    assert_eq!(warnings(false), [""; 0]);
}

#[test]
fn a_ratio_of_costs_is_a_change_of_the_cost() {
    let Effect { change, low, high } = effect(Estimate { value: 1.25, low: 1.0, high: 2.0 });
    assert!((change + 0.2).abs() < 1e-12);
    assert_eq!((low, high), (-0.5, 0.0));
}
