//! What the driver of the dynamic load balancer reveals.

use crate::root::Root;

#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Dlb {
    /// Its name in `/dev`, such as `dlb0`.
    pub name: Option<String>,
}

impl Dlb {
    pub(super) fn read(root: &Root, path: &str) -> Self {
        let is_device = |name: &String| {
            name.strip_prefix("dlb").is_some_and(|number| {
                !number.is_empty() && number.len() < 4 && number.bytes().all(|byte| byte.is_ascii_digit())
            })
        };
        // The class has had two names.
        let mut classes = ["dlb2", "dlb"].into_iter();
        let name = classes
            .find_map(|class| root.names(format!("{path}/{class}")).into_iter().find(|name| is_device(name)));
        Self { name }
    }
}
