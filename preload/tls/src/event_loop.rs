//! The server's side: where its threads wait, for which descriptors, and what must happen before they do.

pub(crate) mod blocking;
pub(crate) mod epoll;
pub(crate) mod fdcalls;
pub(crate) mod fds;
pub(crate) mod kernel;
pub(crate) mod loans;
pub(crate) mod locks;
pub(crate) mod turn;
