//! Compares what is known of descriptors with a model in plain maps.
//!
//! Shared by `tests/descriptors.rs` and the fuzz target `tls_descriptors`, which include the library's module.

use std::collections::HashMap;

use libc::{
    EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, EPOLLET, EPOLLIN, EPOLLONESHOT, EPOLLOUT, epoll_event,
};

use crate::fds::{self, Change, Registration};

/// Numbers that no open file has, so that the kernel is never asked for anything but "bad descriptor".
const FIRST: i32 = 900_000;
const COUNT: i32 = 6;

/// Calls of epoll_ctl that may be in progress at once.
const MOST: usize = 8;

#[derive(Default)]
struct Descriptor {
    is_accepted: bool,
    registration: Option<(i32, u32, u64)>,
    is_waited_on: bool,
    /// Counts its lives, as far as they have been seen.
    life: u64,
    /// Counts the calls and connections that have begun, and notes the latest of them.
    begun: u64,
    noted: u64,
    under_way: Vec<Call>,
}

/// A call of epoll_ctl in progress.
struct Call {
    change: Change,
    number: u64,
    epfd: i32,
    operation: i32,
    event: Option<(u32, u64)>,
}

impl Descriptor {
    fn begin_anew(&mut self, is_accepted: bool, is_new: bool) {
        self.begun += 1;
        let (begun, under_way) = (self.begun, std::mem::take(&mut self.under_way));
        let life = self.life + u64::from(is_new);
        *self = Self { is_accepted, life, begun, noted: begun, under_way, ..Self::default() };
    }

    fn begin(&mut self, fd: i32, epfd: i32, operation: i32, event: Option<(u32, u64)>) {
        self.begun += 1;
        let (change, number) = (fds::changing(fd), self.begun);
        self.under_way.push(Call { change, number, epfd, operation, event });
    }

    fn end(&mut self, which: usize, is_good: bool) {
        if self.under_way.is_empty() {
            return;
        }
        let Call { change, number, epfd, operation, event } =
            self.under_way.remove(which % self.under_way.len());
        if !is_good {
            change.failed();
            return;
        }
        change.succeeded(epfd, operation, event.map(|(events, u64)| epoll_event { events, u64 }));
        if number > self.noted {
            self.noted = number;
            self.registration = event.map(|(events, cookie)| (epfd, events, cookie));
        }
    }
}

/// Each call is three bytes; after each, the library and the model must agree on everything.
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
            // Each life has its own generation.
            let known = lives.entry((*fd, descriptor.life)).or_insert_with(|| fds::generation(*fd));
            assert_eq!(*known, fds::generation(*fd));
        }
    }
    // The table belongs to the process, and outlives the model.
    for descriptor in model.values_mut() {
        (0..MOST).for_each(|_| descriptor.end(0, false));
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
    let is_unknown = !descriptor.is_accepted
        && descriptor.registration.is_none()
        && descriptor.under_way.is_empty()
        && !descriptor.is_waited_on;
    let was_noted =
        descriptor.is_accepted || descriptor.registration.is_some() || !descriptor.under_way.is_empty();
    match operation % 6 {
        0 => {
            fds::accepted(fd, false);
            descriptor.begin_anew(true, true);
        }
        1 => {
            fds::closed(fd);
            // Closing an unknown descriptor goes unnoticed.
            if !is_unknown {
                descriptor.begin_anew(false, was_noted);
            }
        }
        2 => {
            fds::waited_on(fd);
            descriptor.is_waited_on = true;
        }
        3 if descriptor.under_way.len() < MOST => {
            let flags = [EPOLLIN, EPOLLOUT, EPOLLET, EPOLLONESHOT];
            let chosen = flags.iter().enumerate().filter(|(bit, _)| argument >> bit & 1 == 1);
            let events = chosen.fold(0, |events, (_, flag)| events | *flag as u32);
            let (epfd, cookie) =
                (i32::from(argument) << 8, u64::from(argument).wrapping_mul(0x0101_0101_0101_0101));
            let operation = if argument.is_multiple_of(2) { EPOLL_CTL_ADD } else { EPOLL_CTL_MOD };
            descriptor.begin(fd, epfd, operation, Some((events, cookie)));
        }
        4 if descriptor.under_way.len() < MOST => descriptor.begin(fd, 1, EPOLL_CTL_DEL, None),
        _ => {}
    }
    // Many calls return at once, some are late, and some fail.
    let (is_back, is_good) = (argument & 0x30 != 0x30, argument & 0xc0 != 0xc0);
    if is_back || operation % 6 == 5 {
        descriptor.end(usize::from(operation / 6), is_good);
    }
}

fn agree(fd: i32, descriptor: &Descriptor) {
    assert_eq!(fds::is_accepted(fd), descriptor.is_accepted);
    assert_eq!(fds::is_unwaited(fd), !descriptor.is_waited_on);
    assert_eq!(fds::is_shared(fd), !descriptor.is_waited_on);
    let expected =
        descriptor.registration.map(|(epfd, events, cookie)| Registration { epfd, events, cookie });
    assert_eq!(fds::registration(fd), expected);
    assert_eq!(fds::settled_registration(fd), expected.filter(|_| descriptor.under_way.is_empty()));
    assert_eq!(fds::is_registered(fd), expected.is_some());
    // An edge that cannot be reported now would be remembered.
    if let Some(registration) = fds::settled_registration(fd) {
        let mut rearmed = None;
        fds::rearm(fd, |registration| rearmed = Some(registration));
        assert_eq!(rearmed, Some(registration));
    }
    if let Some(registration) = expected {
        assert_eq!(registration.edge_triggered(), registration.events & EPOLLET as u32 != 0);
        assert_eq!(registration.one_shot(), registration.events & EPOLLONESHOT as u32 != 0);
    }
}
