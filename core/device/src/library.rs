//! Device libraries: opened if present, and examined before they are trusted.
//!
//! Nothing links against them. Once opened, a library stays loaded: some start threads, and none was made to be
//! unloaded from another program.

use std::ffi::{CStr, CString, OsString, c_void};
use std::fmt;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A folder to search before the loader is asked.
pub const FOLDER: &str = "HASTEN_DEVICE_LIBRARIES";

/// What is known about a library before it is opened.
#[derive(Debug)]
pub struct Known {
    /// In the order in which they are tried.
    pub names: &'static [&'static str],
    /// Where to get it, for people.
    pub source: &'static str,
}

/// An open library.
#[derive(Debug, Clone, Copy)]
pub struct Library {
    handle: *mut c_void,
    name: &'static str,
    simulated: bool,
}

// SAFETY: the handle is a number for dlsym, which may be called from any thread; it is never closed.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LibraryError {
    Missing {
        names: &'static [&'static str],
        source: &'static str,
        /// The loader's message, if the file exists.
        why: Option<String>,
    },
    Symbol {
        library: &'static str,
        symbol: String,
    },
    Version {
        library: &'static str,
        found: String,
        needed: &'static str,
    },
}

impl fmt::Display for LibraryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { names, source, why } => {
                write!(f, "{} is not installed: get {source}", names.join(" or "))?;
                if let Some(why) = why {
                    write!(f, " (the loader says: {why})")?;
                }
                Ok(())
            }
            Self::Symbol { library, symbol } => {
                write!(f, "{library} has no function {symbol}: it is of another version than hasten knows")
            }
            Self::Version { library, found, needed } => {
                write!(f, "{library} is version {found}, and hasten knows {needed}")
            }
        }
    }
}

impl std::error::Error for LibraryError {}

impl Library {
    pub fn open(known: &Known) -> Result<Self, LibraryError> {
        let folder = std::env::var_os(FOLDER).filter(|folder| !folder.is_empty()).map(PathBuf::from);
        Self::open_in(known, folder.as_deref())
    }

    /// Looks only in `folder`, if given; otherwise where the loader looks.
    pub fn open_in(known: &Known, folder: Option<&Path>) -> Result<Self, LibraryError> {
        let mut why = None;
        for &name in known.names {
            let path = match folder {
                Some(folder) => folder.join(name).into_os_string(),
                None => OsString::from(name),
            };
            let Ok(path) = CString::new(path.into_vec()) else { continue };
            // SAFETY: a terminated string. The library's constructors run: the user has installed it.
            let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
            if !handle.is_null() {
                let mut library = Self { handle, name, simulated: false };
                library.simulated = library.address(c"hasten_simulated").is_some();
                return Ok(library);
            }
            why = why.or_else(|| loader_error().filter(|text| !text.contains("No such file")));
        }
        Err(LibraryError::Missing { names: known.names, source: known.source, why })
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether the library itself says that there is no device behind it.
    pub fn is_simulated(&self) -> bool {
        self.simulated
    }

    /// A function of the library.
    ///
    /// # Safety
    /// `F` must be a function pointer with the type of the library's function of that name.
    pub unsafe fn function<F: Copy>(&self, name: &CStr) -> Result<F, LibraryError> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        let address = self.address(name).ok_or_else(|| LibraryError::Symbol {
            library: self.name,
            symbol: name.to_string_lossy().into_owned(),
        })?;
        // SAFETY: not null, and of this type, as the caller guarantees.
        Ok(unsafe { std::mem::transmute_copy::<*mut c_void, F>(&address) })
    }

    fn address(&self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: an open handle and a terminated string.
        let address = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    }
}

fn loader_error() -> Option<String> {
    // SAFETY: the message belongs to this thread until its next call of the loader.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return None;
    }
    // SAFETY: as above, and terminated.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::{Known, Library, LibraryError};

    #[test]
    fn what_is_missing_is_named_with_its_source() {
        let known = Known { names: &["libhasten-none.so.1"], source: "nowhere" };
        let error = Library::open_in(&known, None).unwrap_err();
        assert_eq!(error.to_string(), "libhasten-none.so.1 is not installed: get nowhere");
    }

    #[test]
    fn a_file_that_is_no_library_is_told_with_what_the_loader_says() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("libhasten-none.so.1"), "text").unwrap();
        let known = Known { names: &["libhasten-none.so.1"], source: "nowhere" };
        let error = Library::open_in(&known, Some(folder.path())).unwrap_err();
        assert!(error.to_string().contains("the loader says: "), "{error}");
    }

    #[test]
    fn a_function_that_is_missing_is_named() {
        let libc = Library::open_in(&Known { names: &["libc.so.6"], source: "Debian" }, None).unwrap();
        assert!(!libc.is_simulated());
        // SAFETY: getpid has this type.
        let getpid = unsafe { libc.function::<extern "C" fn() -> i32>(c"getpid") }.unwrap();
        assert_eq!(getpid() as u32, std::process::id());
        // SAFETY: there is no such function.
        let error = unsafe { libc.function::<extern "C" fn()>(c"hasten_none") }.unwrap_err();
        assert!(matches!(error, LibraryError::Symbol { library: "libc.so.6", .. }));
    }
}
