//! Shared by the whole-product tests.
//!
//! A test starts a [`Subject`], a real server, does something nasty to it [`under_load`](Subject::under_load), and
//! compares the outcome with the stock server's ([`same_as_stock`]). The load gives the test its value: batches must
//! form while the nasty thing happens, as the counters prove, and no well-behaved client may notice.

#![forbid(unsafe_code)]

pub mod bodies;
pub mod booted;
pub mod chromium;
pub mod client;
pub mod daemon;
pub mod effort;
pub mod footprint;
pub mod guest;
pub mod hello;
pub mod http;
pub mod image;
pub mod kills;
pub mod lanes;
pub mod openssl;
pub mod parallel;
pub mod pki;
pub mod product;
pub mod program;
pub mod reload;
pub mod site;
pub mod soak;
pub mod subject;
pub mod tools;
pub mod traffic;
pub mod upstream;
pub mod wait;

pub use effort::effort;
pub use subject::{Side, Subject, same_as_stock};
