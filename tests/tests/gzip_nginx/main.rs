//! nginx that packs and unpacks: whatever its settings, its clients and its fate, nobody can tell it from a stock one.

mod bodies;
mod clients;
mod fates;
mod streams;
mod switches;
