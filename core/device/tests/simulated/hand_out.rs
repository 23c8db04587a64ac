//! DLB's hand-out of messages.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use hasten_device::engines::dlb::{Receiver, Sender, hand_out, look};
use hasten_device::{Fault, Limits, Refusal};

use crate::control::{Control, Injected, Simulated, libraries};
use crate::{PATIENT, SHORT, breaker, wait_for};

fn queue(receivers: usize, limits: Limits) -> (Sender, Vec<Receiver>) {
    hand_out(Some(libraries()), receivers, breaker(), limits)
}

fn ready(receivers: usize, limits: Limits) -> (Sender, Vec<Receiver>) {
    let (mut sender, receivers) = queue(receivers, limits);
    wait_for("the queue is ready", || sender.is_ready());
    (sender, receivers)
}

#[test]
fn every_message_arrives_once_at_one_of_many_receivers() {
    let _control = Control::of(Simulated::Dlb);
    let (mut sender, receivers) = ready(3, PATIENT);
    let (seen, done) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for mut receiver in receivers {
            let (seen, done) = (&seen, &done);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    match receiver.receive() {
                        Some(message) => seen.lock().unwrap().push(message),
                        None => std::thread::yield_now(),
                    }
                }
            });
        }
        for message in 0..1_000 {
            wait_for("there is room", || sender.send(message).is_ok());
        }
        wait_for("all have arrived", || seen.lock().unwrap().len() == 1_000);
        done.store(true, Ordering::Relaxed);
    });
    let seen = seen.into_inner().unwrap();
    assert_eq!(seen.iter().copied().collect::<BTreeSet<_>>(), (0..1_000).collect());
    sender.check(&mut |_| panic!("nothing was lost"));
}

#[test]
fn what_a_fault_swallows_comes_back_to_the_sender_once() {
    let control = Control::of(Simulated::Dlb);
    let faults = [
        (Injected::Hang, Fault::TimedOut),
        (Injected::Partial, Fault::TimedOut),
        (Injected::WrongBytes, Fault::BadOutput),
        (Injected::TooLong, Fault::BadOutput),
        (Injected::Abort, Fault::Gone),
        (Injected::Gone, Fault::Gone),
        (Injected::Restarting, Fault::Gone),
        (Injected::QueueFull, Fault::QueueFull),
    ];
    for (injected, fault) in faults {
        let limits = if fault == Fault::TimedOut { SHORT } else { PATIENT };
        let (mut sender, mut receivers) = ready(2, limits);
        control.inject(injected);
        let mut ended = Vec::new();
        for message in 0..5 {
            match sender.send(message) {
                Ok(()) => {}
                Err(Refusal::NotNow | Refusal::Fault(_)) => ended.push(message),
                Err(Refusal::Declined) => panic!("nothing is declined"),
            }
        }
        wait_for("every message is somewhere", || {
            ended.extend(receivers.iter_mut().filter_map(Receiver::receive));
            sender.check(&mut |message| ended.push(message));
            ended.len() >= 5
        });
        ended.sort_unstable();
        assert_eq!(ended, [0, 1, 2, 3, 4], "{injected:?}");
        assert_eq!(sender.view().fault, Some(fault), "{injected:?}");
        control.inject(Injected::None);
        wait_for("the queue is back", || sender.is_ready());
        sender.send(77).unwrap();
        wait_for("it works", || receivers.iter_mut().find_map(Receiver::receive) == Some(77));
    }
}

#[test]
fn messages_under_way_during_a_reset_come_back() {
    let control = Control::of(Simulated::Dlb);
    let (mut sender, mut receivers) = ready(1, PATIENT);
    sender.send(5).unwrap();
    control.reset();
    let mut lost = Vec::new();
    wait_for("it is noticed", || {
        assert_eq!(receivers[0].receive(), None);
        sender.check(&mut |message| lost.push(message));
        !lost.is_empty()
    });
    assert_eq!(lost, [5]);
    wait_for("the queue is back", || sender.is_ready());
}

#[test]
fn a_queue_that_cannot_start_is_tried_again() {
    let control = Control::of(Simulated::Dlb);
    for injected in [Injected::InitFailure, Injected::NoInstance, Injected::WrongBytes, Injected::HangInit] {
        control.inject(injected);
        let (mut sender, _receivers) = queue(1, SHORT);
        wait_for("it has been tried", || {
            assert!(!sender.is_ready());
            sender.view().fault.is_some()
        });
        control.inject(Injected::None);
        wait_for("the queue is back", || sender.is_ready());
    }
    assert!(look(&Some(libraries())).unwrap().is_simulated());
}
