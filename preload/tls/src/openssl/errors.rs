//! This thread's OpenSSL error queue, saved and restored.
//!
//! A handshake that is called in runs between two calls of the server: the server's errors must stay in the queue, and
//! the handshake's own errors are for the call that gets its result.

use core::cell::RefCell;
use core::ffi::{CStr, c_char, c_int, c_ulong};
use core::ptr::null;
use std::ffi::CString;

use super::abi::*;

/// Errors in the order in which they were raised.
#[derive(Default)]
pub(crate) struct Errors(RefCell<Vec<Error>>);

struct Error {
    code: c_ulong,
    file: CString,
    line: c_int,
    function: CString,
    data: CString,
}

/// The number of errors that libcrypto keeps.
const MOST: usize = 16;

impl Errors {
    pub(crate) fn clear(&self) {
        self.0.borrow_mut().clear();
    }

    /// Moves the errors out of the queue.
    pub(crate) fn take(&self) {
        let mut errors = self.0.borrow_mut();
        errors.clear();
        while errors.len() < MOST
            && let Some(error) = Error::next()
        {
            errors.push(error);
        }
    }

    /// Puts the errors back into the queue for the server.
    pub(crate) fn raise(&self) {
        for error in self.0.take() {
            // SAFETY: this thread's queue; libcrypto copies the texts.
            unsafe {
                ERR_new.get()();
                ERR_set_debug.get()(error.file.as_ptr(), error.line, error.function.as_ptr());
                let (library, reason) = parts(error.code);
                if error.data.is_empty() {
                    ERR_set_error.get()(library, reason, null());
                } else {
                    ERR_set_error.get()(library, reason, c"%s".as_ptr(), error.data.as_ptr());
                }
            }
        }
    }
}

impl Error {
    /// Removes and returns the oldest error in the queue.
    fn next() -> Option<Error> {
        let (mut file, mut function, mut data) = (null(), null(), null());
        let (mut line, mut flags) = (0, 0);
        // SAFETY: this thread's queue; the results are valid until it changes.
        unsafe {
            let get = ERR_get_error_all.get();
            let code = get(&raw mut file, &raw mut line, &raw mut function, &raw mut data, &raw mut flags);
            (code != 0).then(|| Error {
                code,
                file: text(file),
                line,
                function: text(function),
                data: text(data),
            })
        }
    }
}

/// Library and reason, as libcrypto 3.0 packs them: system errors have a bit of their own and a wider reason.
fn parts(code: c_ulong) -> (c_int, c_int) {
    const ERR_LIB_SYS: c_int = 2;
    const SYSTEM: c_ulong = 1 << 31;
    if code & SYSTEM != 0 {
        (ERR_LIB_SYS, (code & (SYSTEM - 1)) as c_int)
    } else {
        ((code >> 23 & 0xff) as c_int, (code & 0x7f_ffff) as c_int)
    }
}

/// # Safety
///
/// `text` is null or a C string.
unsafe fn text(text: *const c_char) -> CString {
    // SAFETY: null or a C string.
    if text.is_null() { CString::default() } else { unsafe { CStr::from_ptr(text) }.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_fall_into_library_and_reason() {
        assert_eq!(parts(0x0A00_00C1), (20, 0xC1), "SSL routines, no shared cipher");
        assert_eq!(parts(0x8000_0068), (2, 104), "system library, ECONNRESET");
    }
}
