//! Whether a cache can exist in a place; the rules are those of `makeFolder` in plugins/node/src/cache/store.ts.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Access, access};
use rustix::process::geteuid;

/// Why this user cannot keep a cache in the folder, if so. A folder that does not exist yet is made on demand.
pub(super) fn obstacle(folder: &Path) -> Option<String> {
    let there = folder.ancestors().find(|path| fs::symlink_metadata(path).is_ok())?;
    let name = there.display();
    let Ok(metadata) = fs::metadata(there) else {
        return Some(format!("{name} leads nowhere"));
    };
    let is_own = metadata.uid() == geteuid().as_raw();
    match () {
        () if !metadata.is_dir() => Some(format!("{name} is no folder")),
        // Root with somebody else's home: a folder owned by root would be in the way of its owner.
        () if !is_own && (there == folder || metadata.uid() != 0) => {
            Some(format!("{name} belongs to another user"))
        }
        () => access(there, Access::WRITE_OK | Access::EXEC_OK)
            .err()
            .map(|_| format!("{name} cannot be written to")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_that_can_be_made_is_no_obstacle_and_one_that_cannot_is() {
        let home = tempfile::tempdir().unwrap();
        let cache = home.path().join(".cache/hasten/node");
        assert_eq!(obstacle(&cache), None);
        fs::create_dir_all(&cache).unwrap();
        assert_eq!(obstacle(&cache), None);
        fs::write(home.path().join("file"), "").unwrap();
        let why = obstacle(&home.path().join("file/hasten")).unwrap();
        assert!(why.ends_with("file is no folder"), "{why}");
        if !geteuid().is_root() {
            fs::set_permissions(home.path(), fs::Permissions::from_mode(0o500)).unwrap();
            let why = obstacle(&home.path().join("other")).unwrap();
            assert!(why.ends_with("cannot be written to"), "{why}");
        }
    }
}
