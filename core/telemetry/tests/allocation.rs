//! The writer allocates nothing, from the constructor to the last count.

use hasten_telemetry::{
    Algorithm, BreakerState, Doubt, Engine, EngineClass, EngineWork, Event, Fault, LANES, Reason, Suspension,
    after_fork_child, init, is_disabled, page, slot, start,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    // Per thread: the harness may allocate on its own meanwhile.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: hands every request to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    /// # Safety
    ///
    /// As for [`GlobalAlloc::alloc`]: `layout` is not of size 0.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    /// # Safety
    ///
    /// As for [`GlobalAlloc::dealloc`]: `pointer` was allocated here with `layout`, and nothing uses it any more.
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block came from `alloc` above.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count_everything() {
    init("tls");
    start();
    page().set_note("no allocation here");
    for algorithm in Algorithm::ALL {
        page().set_break_even(algorithm, 3, 257_000, 976_000);
        slot().batched(algorithm, LANES, 976_000, 1_080_000);
        slot().scalar(algorithm, 2);
        slot().failed(algorithm, 1);
    }
    Reason::ALL.into_iter().for_each(|reason| slot().bypass(reason));
    Event::ALL.into_iter().for_each(|event| slot().event_n(event, 3));
    for engine in Engine::ALL {
        page().register(engine, EngineClass::Device, "0000:6b:00.0", 20_000_000);
        assert!(!is_disabled(engine));
        slot().engine_ran(
            engine,
            &EngineWork { ok: 1, failed: 1, bytes_in: 1, bytes_out: 1, busy_ns: 1, opened: 1 },
        );
        slot().engine_state(engine, BreakerState::Open, Some(Fault::TimedOut), 1);
    }
    slot().suspension(Suspension::Off, Some(Doubt::NestedLoop));
    after_fork_child();
    slot().event(Event::ForkReset);
}

#[test]
fn init_claim_and_count_do_not_allocate() {
    let before = ALLOCATIONS.get();
    drop(std::hint::black_box(Box::new(1)));
    assert_eq!(ALLOCATIONS.get(), before + 1, "the allocator counts");
    count_everything();
    assert_eq!(ALLOCATIONS.get(), before + 1);
    let total = hasten_telemetry::pages_of(std::process::id()).unwrap()[0].read().unwrap().total();
    assert_eq!(total.total().batched, (Algorithm::COUNT * LANES) as u64);
    assert_eq!(total[Event::ForkReset], 4);
}
