//! What another size of the young generation would have cost.

#[allow(dead_code)] // until the model reads it
mod input;

pub use input::ModelInput;
