//! Small servers with the library: each has one habit, and must not notice that it is accelerated.

mod clients;
mod conditions;
mod deep;
mod descriptors;
mod exceptions;
mod handlers;
mod keys;
mod limits;
mod loops;
mod others;
mod plain;
mod processes;
mod readiness;
mod sandbox;
mod suspended;
mod waits;
