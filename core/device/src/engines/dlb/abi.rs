//! The part of libdlb that we use, declared from its public description.

use std::ffi::{c_int, c_void};

use crate::library::{Known, Library, LibraryError};

pub const LIBRARY: Known = Known {
    names: &["libdlb.so"],
    source: "Intel's DLB software package with its driver (libdlb is built with it)",
};

pub(super) type Handle = *mut c_void;

/// `dlb_create_sched_domain_t`.
#[repr(C)]
#[derive(Default)]
pub(super) struct DomainArguments {
    pub(super) queues: u32,
    pub(super) ports: u32,
    pub(super) directed_ports: u32,
    pub(super) event_states: u32,
    pub(super) sequence_slots: [u32; 2],
    /// Either credits for balanced and directed events and a pool for each, or credits and a pool for all.
    pub(super) credits: [u32; 4],
    pub(super) core_mask: [u64; 2],
}

/// `dlb_create_ldb_queue_t`.
#[repr(C)]
#[derive(Default)]
pub(super) struct QueueArguments {
    pub(super) sequence_numbers: u32,
    pub(super) lock_compression: u32,
}

/// `dlb_create_port_t`.
#[repr(C)]
#[derive(Default)]
pub(super) struct PortArguments {
    pub(super) pools: [u32; 2],
    pub(super) depth: u16,
    pub(super) event_states: u32,
    pub(super) class: u32,
}

/// `dlb_event_t`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Event {
    pub(super) data: u64,
    pub(super) data_16: u16,
    pub(super) queue: u8,
    /// Two bits of scheduling type, three of priority.
    pub(super) schedule: u8,
    pub(super) flow: u16,
    pub(super) flags: [u8; 2],
}

const _: () = {
    assert!(size_of::<DomainArguments>() == 56);
    assert!(size_of::<QueueArguments>() == 8);
    assert!(size_of::<PortArguments>() == 20);
    assert!(size_of::<Event>() == 16);
};

pub(super) const UNORDERED: u8 = 1;
/// In the last byte of a received event: the device found an error in it.
pub(super) const EVENT_ERROR: u8 = 1 << 5;
pub(super) const ANY_CLASS: u32 = 4;
/// In the device's capabilities: one pool of credits for all.
pub(super) const COMBINED_CREDITS: u64 = 1 << 4;

#[derive(Clone, Copy)]
pub(super) struct Functions {
    pub(super) open: unsafe extern "C" fn(c_int, *mut Handle) -> c_int,
    pub(super) close: unsafe extern "C" fn(Handle) -> c_int,
    pub(super) capabilities: unsafe extern "C" fn(Handle, *mut u64) -> c_int,
    pub(super) create_domain: unsafe extern "C" fn(Handle, *mut DomainArguments) -> c_int,
    pub(super) attach_domain: unsafe extern "C" fn(Handle, c_int) -> Handle,
    pub(super) detach_domain: unsafe extern "C" fn(Handle) -> c_int,
    pub(super) reset_domain: unsafe extern "C" fn(Handle, c_int) -> c_int,
    pub(super) create_pool: unsafe extern "C" fn(Handle, c_int) -> c_int,
    pub(super) create_balanced_pool: unsafe extern "C" fn(Handle, c_int) -> c_int,
    pub(super) create_directed_pool: unsafe extern "C" fn(Handle, c_int) -> c_int,
    pub(super) create_queue: unsafe extern "C" fn(Handle, *mut QueueArguments) -> c_int,
    pub(super) create_port: unsafe extern "C" fn(Handle, *mut PortArguments) -> c_int,
    pub(super) attach_port: unsafe extern "C" fn(Handle, c_int) -> Handle,
    pub(super) detach_port: unsafe extern "C" fn(Handle) -> c_int,
    pub(super) link: unsafe extern "C" fn(Handle, c_int, c_int) -> c_int,
    pub(super) launch_alerts: unsafe extern "C" fn(Handle, Handle, Handle) -> c_int,
    pub(super) start: unsafe extern "C" fn(Handle) -> c_int,
    pub(super) send: unsafe extern "C" fn(Handle, u32, *mut Event) -> c_int,
    pub(super) receive: unsafe extern "C" fn(Handle, u32, bool, *mut Event) -> c_int,
    pub(super) release: unsafe extern "C" fn(Handle, u32) -> c_int,
}

impl Functions {
    pub(super) fn of(library: &Library) -> Result<Self, LibraryError> {
        // SAFETY: the types are those of libdlb's public header; handles and the callback are pointers.
        unsafe {
            Ok(Self {
                open: library.function(c"dlb_open")?,
                close: library.function(c"dlb_close")?,
                capabilities: library.function(c"dlb_get_dev_capabilities")?,
                create_domain: library.function(c"dlb_create_sched_domain")?,
                attach_domain: library.function(c"dlb_attach_sched_domain")?,
                detach_domain: library.function(c"dlb_detach_sched_domain")?,
                reset_domain: library.function(c"dlb_reset_sched_domain")?,
                create_pool: library.function(c"dlb_create_credit_pool")?,
                create_balanced_pool: library.function(c"dlb_create_ldb_credit_pool")?,
                create_directed_pool: library.function(c"dlb_create_dir_credit_pool")?,
                create_queue: library.function(c"dlb_create_ldb_queue")?,
                create_port: library.function(c"dlb_create_ldb_port")?,
                attach_port: library.function(c"dlb_attach_ldb_port")?,
                detach_port: library.function(c"dlb_detach_port")?,
                link: library.function(c"dlb_link_queue")?,
                launch_alerts: library.function(c"dlb_launch_domain_alert_thread")?,
                start: library.function(c"dlb_start_sched_domain")?,
                send: library.function(c"dlb_send")?,
                receive: library.function(c"dlb_recv")?,
                release: library.function(c"dlb_release")?,
            })
        }
    }
}
