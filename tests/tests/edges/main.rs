//! What real servers go through, happening to accelerated ones while batches form.

mod batching;
mod certificates;
mod client_auth;
mod crowds;
mod disconnect;
mod early_data;
mod garbage;
mod half_open;
mod hot_swap;
mod protocols;
mod reload;
mod resumption;
mod switches;
