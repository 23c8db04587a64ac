//! How much of a long test is run.

/// `usual` in `make test`; `thorough` in `make thorough`, which has the time.
#[must_use]
pub fn effort<T>(usual: T, thorough: T) -> T {
    match std::env::var_os("HASTEN_TEST_THOROUGH") {
        Some(_) => thorough,
        None => usual,
    }
}
