//! nginx that compresses and decompresses: whatever its settings, clients and fate, it cannot be told from a stock one.

mod bodies;
mod clients;
mod fates;
mod streams;
mod switches;
