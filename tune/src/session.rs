//! How a session goes: noise, screening, search, recheck, ablation.

mod findings;

pub use findings::{
    Ablation, Comparison, Conclusion, Fate, Findings, Noise, Phase, Screened, Searched, Trial,
};
