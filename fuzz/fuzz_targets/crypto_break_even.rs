//! The text of `HASTEN_TLS_BREAK_EVEN` comes from a user.

#![no_main]

use hasten_crypto::{Algorithm, BreakEven, Overrides};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match text.parse::<Overrides>() {
        Ok(overrides) => {
            assert_eq!(overrides.to_string().parse(), Ok(overrides));
            let table = BreakEven::new(overrides, |_| text.len().is_multiple_of(2));
            for algorithm in Algorithm::ALL {
                let lanes = table.lanes(algorithm);
                assert!((1..=BreakEven::NEVER).contains(&lanes));
                assert!(overrides.get(algorithm).is_none_or(|wanted| wanted == lanes));
            }
        }
        Err(error) => assert!(error.to_string().starts_with(Overrides::VARIABLE)),
    }
});
