//! The baseline against itself: how different the machine makes two equal things look.

use hasten_evidence::paired::{Pair, ratio};
use hasten_evidence::verdict::Verdict;

use super::allotment::Allotment;
use super::runner::Runner;
use super::{Findings, Halt, Noise, Phase};
use crate::measure::Subject;
use crate::statistics::{logs, spread_of_pairs, visible};

pub(super) fn measure<S: Subject>(
    runner: &mut Runner<'_, S>,
    allotment: &Allotment,
    findings: &mut Findings,
) -> Result<(), Halt<S::Stop>> {
    runner.phase(Phase::Noise, "the service against itself");
    let mut pairs = Vec::new();
    while pairs.len() < allotment.noise {
        let (first, second) = (runner.baseline(Phase::Noise)?, runner.baseline(Phase::Noise)?);
        let swapped = runner.random.bool();
        let (stock, hasten) = if swapped { (second, first) } else { (first, second) };
        pairs.push(Pair { stock, hasten });
    }
    let Some(ratio) = ratio(&pairs) else { return Ok(()) };
    let spread = spread_of_pairs(&logs(&pairs));
    let noise = Noise {
        ratio,
        verdict: Verdict::of(ratio, 0),
        spread,
        visible: visible(spread, allotment.recheck),
        pairs,
    };
    runner.note(&summary(&noise));
    if noise.visible > runner.settings.effect {
        runner.note(&format!(
            "an effect of {:.1} % may stay unseen; --effect {:.0}% asks for what can be seen",
            runner.settings.effect * 100.0,
            (noise.visible * 100.0).ceil()
        ));
    }
    findings.noise = Some(noise);
    Ok(())
}

fn summary(noise: &Noise) -> String {
    format!(
        "two starts of the same service differ by {:.1} %; A/A: {:.3} [{:.3}, {:.3}] {}; effects from {:.1} % up \
         can be seen",
        noise.spread * 100.0,
        noise.ratio.value,
        noise.ratio.low,
        noise.ratio.high,
        noise.verdict,
        noise.visible * 100.0
    )
}
