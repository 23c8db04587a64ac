//! How much is done to find good matches.

/// A level of the engine, known when it is compiled.
pub(super) trait Level: Copy {
    /// The positions in a bucket.
    const WAYS: usize;
    /// The binary logarithm of the number of positions in the table.
    const TABLE: u32;
    /// At how many following positions a better match is looked for.
    const LAZY: u32;
    /// A match of this length is taken at once.
    const NICE: u32;
    /// After 2 to the power of this many literals, one more literal at a time is taken without looking.
    const PATIENCE: u32;
}

macro_rules! levels {
    ($($name:ident: $ways:literal ways of $table:literal bits, lazy $lazy:literal, nice $nice:literal, patience $patience:literal;)+) => {
        $(
            #[derive(Clone, Copy, Debug)]
            pub(super) struct $name;

            impl Level for $name {
                const WAYS: usize = $ways;
                const TABLE: u32 = $table;
                const LAZY: u32 = $lazy;
                const NICE: u32 = $nice;
                const PATIENCE: u32 = $patience;
            }
        )+
    };
}

levels! {
    Two: 2 ways of 15 bits, lazy 1, nice 32, patience 6;
    Four: 4 ways of 16 bits, lazy 1, nice 64, patience 8;
    Eight: 8 ways of 17 bits, lazy 1, nice 128, patience 8;
    EightLazier: 8 ways of 17 bits, lazy 2, nice 128, patience 8;
}
