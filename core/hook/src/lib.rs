//! Interposition: the hook table, typed originals, and the slots that lead to them.
//!
//! A preload library declares its hooks once, with [`slots!`]. Each becomes a function that fetches the original and
//! passes it, with the arguments, to a function of the library, which may do the work itself or call the original. An
//! [`Interposer`] puts it into the slots through which the right callers reach the one library it was written for;
//! nothing is exported. Nothing here logs, and only the search for slots, [`exec`] and [`is_disabled`] allocate.

#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
mod arch;
pub mod exec;
mod interposer;
#[cfg_attr(target_env = "gnu", path = "glibc.rs")]
#[cfg_attr(target_env = "musl", path = "musl.rs")]
mod linker;
mod names;
mod object;
mod original;
mod slots;
mod switch;
mod symbols;
mod wake;

pub use interposer::{Interposer, Notifications};
pub use linker::is_c_library;
pub use original::{Library, Original};
pub use slots::{By, Hook};
pub use switch::is_disabled;

/// Declares hooks: function, typed original, and table line.
///
/// ```ignore
/// slots! {
///     table HOOKS;
///     /// What the server would miss without it.
///     required Ssl by Program fn SSL_do_handshake(ssl: *mut Ssl) -> c_int = handshake::do_handshake;
/// }
/// ```
///
/// The logic function receives the original as its first argument.
#[macro_export]
macro_rules! slots {
    (table $table:ident; $(
        #[doc = $why:literal]
        $need:ident $library:ident by $by:ident fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = $logic:path;
    )*) => {
        /// The functions that would have run without this library.
        #[allow(non_upper_case_globals)]
        pub(crate) mod original {
            #[allow(unused_imports)]
            use super::*;
            $(pub(crate) static $name: $crate::Original<unsafe extern "C" fn($($ty),*) $(-> $ret)?> =
                // SAFETY: the type is the prototype under which the library documents the symbol.
                unsafe { $crate::Original::new($crate::Library::$library, $crate::c_name!($name)) };)*
        }

        /// The functions that stand in for them.
        #[allow(non_snake_case)]
        mod hook {
            use super::*;
            $(
                #[doc = $why]
                ///
                /// # Safety
                ///
                /// As for the original: the caller passes what the C prototype asks for.
                pub(super) unsafe extern "C" fn $name($($arg: $ty),*) $(-> $ret)? {
                    // SAFETY: the caller's arguments are forwarded unchanged, to logic that has the original's contract.
                    unsafe { $logic(original::$name.get(), $($arg),*) }
                }
            )*
        }

        pub(crate) static $table: &[$crate::Hook] = &[$($crate::Hook {
            name: $crate::c_name!($name),
            library: $crate::Library::$library,
            by: $crate::By::$by,
            required: $crate::is_required!($need),
            function: hook::$name as *const ::core::ffi::c_void,
            original: original::$name.cell(),
        }),*];

        $crate::hook_table!(LINES, $($name $library $need $why)*);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! is_required {
    (required) => {
        true
    };
    (optional) => {
        false
    };
}

/// The table as text, in an ELF section of its own, for `hasten check` and the generated docs.
#[doc(hidden)]
#[macro_export]
macro_rules! hook_table {
    ($table:ident, $($name:ident $library:ident $need:ident $why:literal)*) => {
        #[used]
        #[unsafe(link_section = ".hasten.hooks")]
        static $table: [u8; {
            const LINES: &str = concat!($(
                stringify!($name), "\t", stringify!($library), "\t", stringify!($need), "\t", $why, "\n",
            )*);
            LINES.len()
        }] = {
            const LINES: &str = concat!($(
                stringify!($name), "\t", stringify!($library), "\t", stringify!($need), "\t", $why, "\n",
            )*);
            let mut table = [0; LINES.len()];
            let mut i = 0;
            while i < table.len() {
                table[i] = LINES.as_bytes()[i];
                i += 1;
            }
            table
        };
    };
}

/// Declares functions that are called but not hooked.
#[macro_export]
macro_rules! imports {
    ($( $library:ident fn $name:ident($($ty:ty),* $(,)?) $(-> $ret:ty)?; )*) => {
        $(
            #[allow(non_upper_case_globals)]
            pub(crate) static $name: $crate::Original<unsafe extern "C" fn($($ty),*) $(-> $ret)?> =
                // SAFETY: the type is the prototype under which the library documents the symbol.
                unsafe { $crate::Original::new($crate::Library::$library, $crate::c_name!($name)) };
        )*

        /// Whether every function in this list can be found.
        pub(crate) fn all_found() -> bool {
            true $(&& $name.find().is_some())*
        }
    };
}

/// A symbol's name as a C string constant.
#[macro_export]
macro_rules! c_name {
    ($name:ident) => {
        match ::core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => unreachable!(),
        }
    };
}
