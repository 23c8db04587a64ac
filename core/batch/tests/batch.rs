//! A batch with owners other than handshakes: who waits, who is answered and woken, and with what.

mod support;

use std::sync::Arc;

use hasten_batch::{Batch, Request, Settings, Verdict};
use hasten_crypto::{Curve, EcKey, Group, Ifma, LANES, LaneEngine, Single};
use hasten_telemetry::Reason;
use openssl::ecdsa::EcdsaSig;

use support::scripted::Scripted;
use support::{
    Operations, Owner, STACK, digest, is_signed, key, owners, rsa_keys, with_lanes, without_lanes, woken,
};

#[test]
fn the_eighth_completes_the_group() {
    let Some(batch) = with_lanes(2) else { return };
    let (host, key) = key(Curve::P256);
    let owners = owners(LANES);
    for (number, owner) in owners.iter().enumerate() {
        owner.submit(&batch, &Request::Ecdsa(&key, &digest(number)), 0);
        assert_eq!(owner.completes(&batch), number == LANES - 1);
    }
    assert!(!batch.has_waiting());
    assert_eq!(woken(&owners), [1, 1, 1, 1, 1, 1, 1, 0], "the caller goes on by itself");
    for (number, owner) in owners.iter().enumerate() {
        assert!(is_signed(owner, &host, &digest(number)), "{number}");
        assert_eq!(owner.verdict(), Verdict::Done, "the signature was handed over and is gone");
    }
}

#[test]
fn each_kind_waits_for_its_own() {
    let Some(batch) = with_lanes(2) else { return };
    let (host, small) = key(Curve::P256);
    let (other_host, large) = key(Curve::P384);
    let owners = owners(5);
    for (number, owner) in owners.iter().enumerate() {
        let key = if number < 3 { &small } else { &large };
        owner.submit(&batch, &Request::Ecdsa(key, &digest(number)), 0);
    }
    // SAFETY: it waits.
    unsafe { batch.run(owners[1].operation()) };
    assert_eq!(woken(&owners), [1, 1, 1, 0, 0]);
    assert!(batch.has_waiting());
    batch.run_partial();
    assert_eq!(woken(&owners), [1; 5]);
    for (number, owner) in owners.iter().enumerate() {
        let host = if number < 3 { &host } else { &other_host };
        assert!(is_signed(owner, host, &digest(number)), "{number}");
    }
}

#[test]
fn too_few_are_sent_to_the_original() {
    let Some(batch) = with_lanes(3) else { return };
    let (_, key) = key(Curve::P256);
    for (count, reason) in [(1, Reason::Alone), (2, Reason::BelowBreakEven)] {
        let owners = owners(count);
        owners.iter().for_each(|owner| owner.submit(&batch, &Request::Ecdsa(&key, &digest(0)), 0));
        batch.run_partial();
        for owner in &owners {
            assert_eq!((owner.woken.get(), owner.verdict()), (1, Verdict::Bypass(reason)));
        }
    }
}

/// With lanes from two operations on, of an engine that runs on every CPU.
fn scripted() -> Operations<Scripted> {
    Batch::new(&Settings {
        lane_engine: Some(Scripted),
        single: None,
        break_even: "rsa-2048-sign:2,x25519-derive:2".parse().unwrap(),
        bypass: false,
        lanes: Arc::default(),
    })
}

#[test]
fn every_owner_gets_the_result_of_its_own_lane() {
    let batch = scripted();
    let key = rsa_keys().good;
    for count in 2..=LANES {
        let signers = owners(count);
        let exchangers = owners(count);
        for (at, (signer, exchanger)) in signers.iter().zip(&exchangers).enumerate() {
            let input = [at as u8; 256];
            signer.submit(&batch, &Request::Rsa(&key, &input), 0);
            exchanger.submit(&batch, &Request::Derive(Group::X25519, &[7; 32], &input[..32]), 0);
        }
        batch.run_partial();
        for (at, (signer, exchanger)) in signers.iter().zip(&exchangers).enumerate() {
            let (input, mut signature, mut secret) = ([at as u8; 256], [0; 256], [0; 32]);
            assert_eq!(signer.result(&mut signature), Verdict::Done);
            assert_eq!(signature.as_slice(), Scripted::signature(&input));
            assert_eq!(exchanger.result(&mut secret), Verdict::Done);
            assert_eq!(secret.as_slice(), Scripted::secret(&[7; 32], &input[..32]));
        }
    }
}

#[test]
fn lane_without_a_result_fails_alone() {
    let batch = scripted();
    for spoiled in 0..LANES {
        Scripted::spoil(core::array::from_fn(|lane| lane == spoiled));
        let owners = owners(LANES);
        for owner in &owners {
            owner.submit(&batch, &Request::Derive(Group::X25519, &[7; 32], &[9; 32]), 0);
        }
        batch.run_partial();
        for (at, owner) in owners.iter().enumerate() {
            let expected = if at == spoiled { Verdict::Failed } else { Verdict::Done };
            assert_eq!(owner.result(&mut [0; 32]), expected, "lane {at}, spoiled {spoiled}");
        }
    }
    Scripted::spoil([false; LANES]);
}

#[test]
fn both_sides_derive_the_same_secret() {
    let Some(batch) = with_lanes(2) else { return };
    let pairs: Vec<_> =
        (0..4).map(|_| batch.engine.key_pair(Group::X25519).expect("eight at a time")).collect();
    let owners = owners(4);
    for (at, owner) in owners.iter().enumerate() {
        let (own, peer) = (&pairs[at], &pairs[at ^ 1]);
        owner.submit(&batch, &Request::Derive(Group::X25519, own.private(), peer.public()), 0);
    }
    batch.run_partial();
    let secrets = owners.iter().map(|owner| {
        let mut secret = [0; 32];
        assert_eq!(owner.result(&mut secret), Verdict::Done);
        secret
    });
    let secrets: Vec<_> = secrets.collect();
    assert_eq!((secrets[0], secrets[2]), (secrets[1], secrets[3]));
    assert_ne!(secrets[0], secrets[2]);
}

#[test]
fn a_bad_point_fails_alone() {
    let Some(batch) = with_lanes(2) else { return };
    let good = batch.engine.key_pair(Group::X25519).unwrap();
    let owners = owners(3);
    for (at, owner) in owners.iter().enumerate() {
        // Of small order: the secret would be zero.
        let peer = if at == 1 { &[0; 32] } else { good.public() };
        owner.submit(&batch, &Request::Derive(Group::X25519, good.private(), peer), 0);
    }
    batch.run_partial();
    let verdicts: Vec<_> = owners.iter().map(|owner| owner.result(&mut [0; 32])).collect();
    assert_eq!(verdicts, [Verdict::Done, Verdict::Failed, Verdict::Done]);
}

#[test]
fn what_waits_is_answered_after_24_turns() {
    let batch = without_lanes();
    let (_, key) = key(Curve::P256);
    let owners = owners(2);
    owners[0].submit(&batch, &Request::Ecdsa(&key, &digest(0)), u32::MAX);
    owners[1].submit(&batch, &Request::Ecdsa(&key, &digest(1)), 22);
    batch.run_overdue(u32::MAX);
    batch.run_overdue(23);
    assert_eq!(woken(&owners), [1, 1], "the first of a queue takes the others along");
}

#[test]
fn one_that_was_told_may_ask_again_at_once() {
    let batch = Box::leak(Box::new(without_lanes()));
    let key: &'static EcKey = Box::leak(Box::new(key(Curve::P256).1));
    let owner: &'static Owner = Box::leak(Box::new(Owner::new()));
    *owner.then.borrow_mut() = Some(Box::new(|| owner.submit(batch, &Request::Ecdsa(key, &digest(1)), 0)));
    owner.submit(batch, &Request::Ecdsa(key, &digest(0)), 0);
    batch.run_partial();
    assert!(batch.has_waiting() && owner.woken.get() == 1);
    batch.run_partial();
    assert!(!batch.has_waiting() && owner.woken.get() == 2);
}

#[test]
fn without_lanes_nothing_waits_for_them() {
    let settings = Settings {
        lane_engine: None,
        single: None,
        break_even: Default::default(),
        bypass: false,
        lanes: Arc::default(),
    };
    let batch: Operations = Batch::new(&settings);
    assert!(!batch.can_answer() && !batch.takes_alone());
    assert!(batch.engine.key_pair(Group::P256).is_none());
    let (_, key) = key(Curve::P384);
    assert!(batch.engine.ecdsa(&key, &digest(0)).is_none());
}

/// A coroutine's stack may be too small for lanes.
#[test]
fn lanes_are_left_alone_where_the_stack_has_no_room_for_them() {
    let Some(batch) = with_lanes(1) else { return };
    let (_, key) = key(Curve::P256);
    let owners = owners(2);
    STACK.set(Ifma::STACK - 1);
    owners.iter().for_each(|owner| owner.submit(&batch, &Request::Ecdsa(&key, &digest(0)), 0));
    batch.run_partial();
    assert!(owners.iter().all(|owner| owner.verdict() == Verdict::Bypass(Reason::NotNativeStack)));
    assert!(batch.engine.key_pair(Group::X25519).is_none() && batch.engine.ecdsa(&key, &digest(0)).is_none());
    STACK.set(Ifma::STACK);
    assert!(batch.engine.key_pair(Group::X25519).is_some() && batch.engine.ecdsa(&key, &digest(0)).is_some());
    STACK.set(0);
    assert!(batch.engine.key_pair(Group::X25519).is_some(), "there are more in the pool");
}

/// Without lanes, with the engine for single operations.
fn one_at_a_time() -> Option<Operations> {
    let single = Single::detect();
    if single.is_none() {
        eprintln!("skipped: this CPU has no ADX or AVX2, or {} is set", Single::DISABLE);
    }
    Some(Batch::new(&Settings {
        lane_engine: None,
        single: Some(single?),
        break_even: Default::default(),
        bypass: false,
        lanes: Arc::default(),
    }))
}

#[test]
fn without_lanes_operations_are_done_one_at_a_time() {
    let Some(batch) = one_at_a_time() else { return };
    let engine = &batch.engine;
    assert!(!batch.can_answer(), "nothing is worth waiting for");
    assert_eq!(engine.can_sign(), Ok(()));
    for curve in Curve::ALL {
        let (host, key) = key(curve);
        let mut der = [0; 128];
        let len = engine.ecdsa(&key, &digest(1)).unwrap().to_der(&mut der).unwrap();
        assert!(EcdsaSig::from_der(&der[..len]).unwrap().verify(&digest(1), &host).unwrap());
    }
    for group in Group::ALL {
        let [ours, theirs] = [(); 2].map(|()| engine.key_pair(group).unwrap());
        let [mut one, mut other] = [vec![0; group.shared_len()], vec![0; group.shared_len()]];
        // First, while the shipped figures stand: on a busy machine a derivation may take longer than the original is said to.
        assert!(engine.derive_if_cheaper(group, theirs.private(), ours.public(), &mut other));
        assert!(engine.derive(group, ours.private(), theirs.public(), &mut one));
        assert!(one == other && one.iter().any(|byte| *byte != 0));
        assert!(!engine.derive(group, ours.private(), &[0; 7], &mut one), "OpenSSL says what is wrong");
    }
}

#[test]
fn the_original_is_tried_now_and_then_until_it_has_reported_its_cost() {
    let Some(batch) = one_at_a_time() else { return };
    let engine = &batch.engine;
    let (_, key) = key(Curve::P384);
    let signed = || engine.ecdsa(&key, &digest(1)).is_some();
    let before = (0..5000).take_while(|_| signed()).count();
    assert!((500..5000).contains(&before), "{before}");
    assert!(!signed(), "the original has not reported yet");
    engine.original_took(key.curve().sign(), 772_000);
    assert!(signed());
}

/// Any order of events: each waiting owner is woken once, with a verdict, and an owner whose operation was withdrawn is
/// not.
#[test]
fn nobody_is_forgotten_or_told_twice() {
    let batch = without_lanes();
    let keys = [key(Curve::P256).1, key(Curve::P384).1];
    let owners = owners(12);
    let mut expected = vec![0; owners.len()];
    let mut waits = vec![false; owners.len()];
    let mut state = 1_u32;
    let mut random = |below: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % below
    };
    for turn in 0..50_000 {
        let (at, step) = (random(owners.len()), random(10));
        let owner = &owners[at];
        let kind = at % 2;
        match step {
            0..=5 if !waits[at] => {
                owner.submit(&batch, &Request::Ecdsa(&keys[kind], &digest(at)), turn);
                waits[at] = true;
                if owner.completes(&batch) {
                    waits[at] = false;
                    assert!(matches!(owner.verdict(), Verdict::Bypass(_)));
                }
            }
            6 if waits[at] => {
                owner.withdraw(&batch);
                waits[at] = false;
            }
            // SAFETY: it waits.
            7 if waits[at] => unsafe { batch.run(owner.operation()) },
            8 => batch.run_partial(),
            9 => batch.run_overdue(turn),
            _ => {}
        }
        for (at, owner) in owners.iter().enumerate() {
            if owner.woken.get() > expected[at] {
                expected[at] += 1;
                assert!(waits[at], "woken without having asked");
                waits[at] = false;
                assert!(matches!(owner.verdict(), Verdict::Bypass(_)));
            }
            assert_eq!(owner.woken.get(), expected[at]);
        }
        assert_eq!(batch.has_waiting(), waits.contains(&true));
    }
    assert!(expected.iter().all(|&times| times > 100));
}
