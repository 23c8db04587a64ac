//! How much more memory an accelerated worker uses than a stock one: docs/reliability.md says it in words.

use std::fs;

use hasten_bench::certificates::KeyKind;
use hasten_bench::cpu;
use hasten_tests::Side;

use crate::cage::Cage;
use crate::nginx::NGINX;

/// KiB of a process: everything resident, and the private part without a file behind it.
#[derive(Clone, Copy, Debug)]
struct Memory {
    resident: u64,
    anonymous: u64,
}

impl Memory {
    fn of(pid: u32) -> Self {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("the worker lives");
        let field = |name: &str| {
            let rest = text.lines().find_map(|line| line.strip_prefix(name)).expect("a line of this name");
            rest.split_whitespace().next().and_then(|kib| kib.parse().ok()).expect("a number of KiB")
        };
        Self { resident: field("Rss:"), anonymous: field("Anonymous:") }
    }
}

/// Of nginx's worker: after its first client, and after 240 more.
fn memory(side: Side) -> [Memory; 2] {
    let cage = Cage::new(KeyKind::Rsa2048);
    let caged = cage.start(&NGINX, side);
    let worker = cpu::children(caged.pid())[0];
    let idle = Memory::of(worker);
    let _ = cage.visit(&NGINX, &caged);
    [idle, Memory::of(worker)]
}

#[test]
fn a_worker_of_nginx() {
    let (stock, accelerated) = (memory(Side::Stock), memory(Side::Accelerated));
    for (stock, accelerated) in stock.into_iter().zip(accelerated) {
        eprintln!("stock {stock:?}, accelerated {accelerated:?}");
        assert!(accelerated.resident <= stock.resident + (4 << 10), "{accelerated:?}, {stock:?}");
        assert!(accelerated.anonymous <= stock.anonymous + 1536, "{accelerated:?}, {stock:?}");
    }
}
