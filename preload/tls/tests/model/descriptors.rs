//! What is known of descriptors against a model that keeps it in plain maps.
//!
//! Shared by `tests/descriptors.rs` and the fuzz target `tls_descriptors`, which include the library's module.

use std::collections::HashMap;

use libc::{
    EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, EPOLLET, EPOLLIN, EPOLLONESHOT, EPOLLOUT, epoll_event,
};

use crate::fds::{self, Registration};

/// Numbers that no open file has, so that nothing is asked of the kernel but "bad descriptor".
const FIRST: i32 = 900_000;
const COUNT: i32 = 6;

#[derive(Clone, Default)]
struct Descriptor {
    is_accepted: bool,
    registration: Option<(i32, u32, u64)>,
    is_waited_on: bool,
    /// Counts its lives, as far as somebody has seen them.
    life: u64,
}

/// Three bytes are a call; after each the library and the model must agree on everything.
pub(crate) fn check(data: &[u8]) {
    let mut model: HashMap<i32, Descriptor> = HashMap::new();
    let mut lives: HashMap<(i32, u64), u64> = HashMap::new();
    for fd in FIRST..FIRST + COUNT {
        fds::accepted(fd, false);
        fds::closed(fd);
        model.insert(fd, Descriptor::default());
    }
    for call in data.chunks_exact(3) {
        let fd = FIRST + i32::from(call[1]) % COUNT;
        act(model.get_mut(&fd).expect("all are in it"), call[0], fd, call[2]);
        for (fd, descriptor) in &model {
            agree(*fd, descriptor);
            // One life, one generation, and another life, another.
            let known = lives.entry((*fd, descriptor.life)).or_insert_with(|| fds::generation(*fd));
            assert_eq!(*known, fds::generation(*fd));
        }
    }
    for fd in FIRST..FIRST + COUNT {
        let mut generations: Vec<_> =
            lives.iter().filter(|((of, _), _)| *of == fd).map(|(_, life)| life).collect();
        let all = generations.len();
        generations.sort_unstable();
        generations.dedup();
        assert_eq!(generations.len(), all, "two lives of {fd} look the same");
    }
}

fn act(descriptor: &mut Descriptor, operation: u8, fd: i32, argument: u8) {
    let is_unknown = !descriptor.is_accepted && descriptor.registration.is_none();
    match operation % 5 {
        0 => {
            fds::accepted(fd, false);
            *descriptor =
                Descriptor { is_accepted: true, life: descriptor.life + 1, ..Descriptor::default() };
        }
        1 => {
            fds::closed(fd);
            // The end of what nobody knew of is not seen.
            let life = descriptor.life + u64::from(!is_unknown);
            *descriptor = Descriptor { life, ..Descriptor::default() };
        }
        2 => {
            fds::waited_on(fd);
            descriptor.is_waited_on = true;
        }
        3 => {
            let flags = [EPOLLIN, EPOLLOUT, EPOLLET, EPOLLONESHOT];
            let chosen = flags.iter().enumerate().filter(|(bit, _)| argument >> bit & 1 == 1);
            let events = chosen.fold(0, |events, (_, flag)| events | *flag as u32);
            let (epfd, cookie) =
                (i32::from(argument) << 8, u64::from(argument).wrapping_mul(0x0101_0101_0101_0101));
            let operation = if argument.is_multiple_of(2) { EPOLL_CTL_ADD } else { EPOLL_CTL_MOD };
            fds::controlled(epfd, operation, fd, Some(epoll_event { events, u64: cookie }));
            descriptor.registration = Some((epfd, events, cookie));
        }
        _ => {
            fds::controlled(1, EPOLL_CTL_DEL, fd, None);
            descriptor.registration = None;
        }
    }
}

fn agree(fd: i32, descriptor: &Descriptor) {
    assert_eq!(fds::is_accepted(fd), descriptor.is_accepted);
    assert_eq!(fds::is_unwaited(fd), !descriptor.is_waited_on);
    assert_eq!(fds::is_shared(fd), !descriptor.is_waited_on);
    let expected =
        descriptor.registration.map(|(epfd, events, cookie)| Registration { epfd, events, cookie });
    assert_eq!(fds::registration(fd), expected);
    if let Some(registration) = expected {
        assert_eq!(registration.edge_triggered(), registration.events & EPOLLET as u32 != 0);
        assert_eq!(registration.one_shot(), registration.events & EPOLLONESHOT as u32 != 0);
    }
}
