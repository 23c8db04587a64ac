//! The self-test of every engine in this build.

use hasten_device::Root;
use hasten_device::selftest::{Outcome, Report, run};

use crate::control::{Control, Injected, Simulated, libraries};

const ENGINES: &[(Simulated, &str)] = &[
    (Simulated::QatZip, "qatzip"),
    (Simulated::Qpl, "qpl"),
    (Simulated::Qat, "qat"),
    #[cfg(feature = "unused-engines")]
    (Simulated::Dml, "dml"),
    #[cfg(feature = "unused-engines")]
    (Simulated::Dlb, "dlb"),
];

fn reports() -> Vec<Report> {
    run(&Root::new("/none"), crate::deflate::inflate, &Some(libraries()))
}

#[test]
fn an_engine_that_fails_is_reported_and_the_others_still_pass() {
    let controls: Vec<_> = ENGINES.iter().map(|(engine, _)| Control::of(*engine)).collect();
    let passed = |report: &Report| matches!(report.outcome, Outcome::Passed(_));
    let good = reports();
    assert!(good.iter().map(|report| report.engine).eq(ENGINES.iter().map(|(_, name)| *name)));
    assert!(good.iter().all(|report| report.simulated && passed(report)), "{good:?}");
    for (control, (_, name)) in controls.iter().zip(ENGINES) {
        control.inject(Injected::InitFailure);
        let reports = reports();
        assert!(reports.iter().all(|report| passed(report) == (report.engine != *name)), "{reports:?}");
        control.inject(Injected::None);
    }
}
