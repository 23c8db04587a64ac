//! The zoo: programs that nobody wrote for hasten, and servers generated from a seed. Each is run stock and
//! accelerated, with no visible difference.

/// A test for each animal, with both kinds of keys.
macro_rules! zoo {
    ($($(#[$attribute:meta])? $test:ident => $animal:expr;)+) => {
        $(#[test] $(#[$attribute])? fn $test() { $crate::cage::compare(&$animal); })+
    };
}

mod animals;
mod aws_lc;
mod cage;
mod clients;
mod greeters;
mod guests;
mod loops;
mod memory;
mod nginx;
mod openvpn;
mod providers;
mod proxies;
mod schedules;
mod stacks;
mod tongues;
mod wrapped;
