//! `HASTEN_TIER=NEAR:FAR=NEAR_SHARE:FAR_SHARE`, such as `0:2=1:3`.

use core::ffi::CStr;

/// What the user asked for.
pub(crate) struct Config {
    pub(crate) far_node: u32,
    /// The far part of all bytes, in 1/65,536.
    pub(crate) target: u32,
}

/// What the environment asks for; `None` keeps everything near.
pub(crate) fn read() -> Option<Config> {
    // SAFETY: a constructor runs before the program can change its environment, and the name is a C string.
    let value = unsafe { libc::getenv(c"HASTEN_TIER".as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: getenv returns a C string, which nobody changes meanwhile.
    parse(unsafe { CStr::from_ptr(value) }.to_str().ok()?)
}

fn parse(text: &str) -> Option<Config> {
    let (nodes, shares) = text.split_once('=')?;
    let (near_node, far_node) = nodes.split_once(':')?;
    let (near, far) = shares.split_once(':')?;
    let _: u32 = near_node.parse().ok()?;
    let far_node = far_node.parse().ok().filter(|&node: &u32| node < 1024)?;
    let (near, far): (u16, u16) = (near.parse().ok()?, far.parse().ok()?);
    let total = u32::from(near) + u32::from(far);
    (near > 0 && far > 0).then(|| Config { far_node, target: (u32::from(far) << 16) / total })
}
