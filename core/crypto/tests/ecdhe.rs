//! Key pairs and shared secrets, against OpenSSL.

mod support;

use hasten_crypto::{DeriveLane, Group, KeyPool, derive};

use crate::support::{engine, host_derive, host_key, host_public, random};

#[test]
fn both_sides_agree_with_openssl() {
    let Some((ifma, mut scratch)) = engine() else { return };
    for group in Group::ALL {
        let mut pool = KeyPool::new(group).unwrap();
        for lanes in 1..=8 {
            pool.refill(ifma, &mut scratch, &mut random);
            assert!(scratch.is_zero());
            let ours: Vec<_> = (0..lanes).map(|_| pool.take().unwrap()).collect();
            pool.clear();
            pool.refill(ifma, &mut scratch, &mut random);
            let theirs: Vec<_> = (0..lanes).map(|_| pool.take().unwrap()).collect();
            let mut secrets = vec![vec![0; group.shared_len()]; lanes];
            let mut batch: Vec<_> = secrets
                .iter_mut()
                .zip(ours.iter().zip(&theirs))
                .map(|(shared, (ours, theirs))| DeriveLane {
                    private: ours.private(),
                    peer: theirs.public(),
                    shared,
                })
                .collect();
            let status = derive(ifma, &mut scratch, group, &mut batch);
            assert!(status.all_ok(lanes), "{group:?} {lanes} {status:?}");
            assert!(scratch.is_zero());
            for (i, secret) in secrets.iter().enumerate() {
                let host = host_key(group, theirs[i].private());
                assert_eq!(host_public(group, &host), theirs[i].public());
                assert_eq!(host_derive(group, &host, ours[i].public()).as_ref(), Some(secret));
            }
            pool.clear();
        }
    }
}
