//! The promise behind every "faster": a server compared with itself is called different in at most 5 of 100 cases,
//! through the whole procedure, stop rule included.

use hasten_evidence::paired::{Pair, ratio};
use hasten_evidence::stop::StopRule;
use hasten_evidence::verdict::Verdict;

/// The rules of `hasten bench tls`, quick and full.
const RULES: [StopRule; 2] = [
    StopRule { min_pairs: 6, max_pairs: 10, uncertainty: 0.01 },
    StopRule { min_pairs: 8, max_pairs: 20, uncertainty: 0.005 },
];
const TRIALS: usize = 400;

struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// A round's cost: log-normal noise, and occasionally a neighbour that raises it.
fn cost(random: &mut Random, noise: f64, disturbed: f64) -> f64 {
    let neighbour = if random.uniform() < disturbed { 0.2 * random.uniform() } else { 0.0 };
    300.0 * (noise * random.normal() + neighbour).exp()
}

fn verdict(random: &mut Random, rule: StopRule, noise: f64, disturbed: f64, gain: f64) -> Verdict {
    let mut pairs = Vec::new();
    while !rule.is_enough(&pairs) {
        // What slows the whole machine for a while slows both sides.
        let weather = (0.1 * random.normal()).exp();
        let stock = weather * gain * cost(random, noise, disturbed);
        let hasten = weather * cost(random, noise, disturbed);
        pairs.push(Pair { stock, hasten });
    }
    Verdict::of(ratio(&pairs).unwrap(), 0)
}

#[test]
fn a_server_against_itself_is_no_difference() {
    for rule in RULES {
        for (noise, disturbed) in [(0.002, 0.0), (0.03, 0.0), (0.01, 0.1), (0.02, 0.3)] {
            let mut random = Random(42);
            let trial = |_| verdict(&mut random, rule, noise, disturbed, 1.0);
            let wrong = (0..TRIALS).map(trial).filter(|&verdict| verdict != Verdict::NoDifference).count();
            let rate = wrong as f64 / TRIALS as f64;
            assert!(rate <= 0.05, "{rule:?}, noise {noise}, disturbed {disturbed}: {rate}");
        }
    }
}

#[test]
fn a_real_gain_is_found() {
    for rule in RULES {
        let mut random = Random(7);
        let found =
            (0..100).filter(|_| verdict(&mut random, rule, 0.02, 0.1, 1.3) == Verdict::Faster).count();
        assert!(found >= 95, "{rule:?}: {found} of 100");
        let found =
            (0..100).filter(|_| verdict(&mut random, rule, 0.02, 0.1, 0.77) == Verdict::Slower).count();
        assert!(found >= 95, "{rule:?}: {found} of 100");
    }
}
