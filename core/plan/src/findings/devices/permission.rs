//! Files in `/dev`: whether they exist, and who owns them.

use hasten_probe::host::device::{Access, Caller, DeviceFile};

use super::Hindrance;

/// `missing` is the command that creates the file.
pub(super) fn hindrance(file: &DeviceFile, caller: &Caller, missing: &str) -> Option<Hindrance> {
    let path = &file.path;
    match file.access {
        Access::Granted | Access::Unknown => None,
        Access::Missing => Some(Hindrance::new(format!("{path} is missing"), missing)),
        Access::Denied => {
            let user = caller.uid.map(|uid| format!("user {uid}")).unwrap_or_default();
            let fix = match file.group {
                // A group other than root's that has access is meant for this purpose.
                Some((group, true)) if group != 0 => {
                    format!("usermod -aG \"$(getent group {group} | cut -d: -f1)\" USER, and log in again")
                }
                _ => format!("chgrp GROUP {path} && chmod g+rw {path}, with a GROUP of the server's user"),
            };
            Some(Hindrance::new(format!("no permission to use {path} as {user}"), fix))
        }
    }
}
