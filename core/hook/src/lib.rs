//! Interposition: the hook table, typed originals, and the shape of a hook.
//!
//! A preload library declares its hooks once, with [`hooks!`]. Each becomes
//! an exported C function of ten lines or fewer: it fetches the original,
//! and hands it with the arguments to a function of the library that may do
//! the work itself or call the original. Nothing here logs, and only
//! [`exec`] and [`Switch::init`] allocate.

pub mod exec;
mod original;
mod switch;

pub use original::{Library, Original};
pub use switch::Switch;

/// Declares hooks: exported function, typed original, and table line.
///
/// ```ignore
/// hooks! {
///     gate crate::active;
///     /// What the server would miss without it.
///     required Ssl fn SSL_do_handshake(ssl: *mut Ssl) -> c_int = handshake::do_handshake;
/// }
/// ```
///
/// The logic function receives the original as its first argument. While
/// `gate()` is false the original runs alone.
#[macro_export]
macro_rules! hooks {
    (gate $gate:path; $(
        #[doc = $why:literal]
        $need:ident $library:ident fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = $logic:path;
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

        $(
            #[doc = $why]
            ///
            /// # Safety
            ///
            /// As the original: the caller passes what the C prototype asks for.
            #[allow(non_snake_case, clippy::missing_safety_doc)]
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name($($arg: $ty),*) $(-> $ret)? {
                let original = original::$name.get();
                // SAFETY: the caller's arguments are forwarded unchanged, to the original
                // or to logic that has the original's contract.
                unsafe {
                    if $gate() { $logic(original, $($arg),*) } else { original($($arg),*) }
                }
            }
        )*

        $crate::hook_table!(HOOKS, $($name $library $need $why)*);
    };
}

/// Declares hooks whose logic must know where the call came from, as
/// [`hooks!`] does for the others.
///
/// The logic is an `extern "C"` function that gets the return address as one
/// more argument, in the register after the last: hence three or four
/// arguments, all of register size. It fetches the original itself.
#[macro_export]
macro_rules! hooks_with_caller {
    (gate $gate:path; table $table:ident; $(
        #[doc = $why:literal]
        $need:ident $library:ident fn $name:ident($a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty $(, $d:ident: $D:ty)?) -> $ret:ty = $logic:path;
    )*) => {
        #[allow(non_upper_case_globals)]
        pub(crate) mod original_with_caller {
            #[allow(unused_imports)]
            use super::*;
            $(pub(crate) static $name: $crate::Original<unsafe extern "C" fn($A, $B, $C $(, $D)?) -> $ret> =
                // SAFETY: the type is the prototype under which the library documents the symbol.
                unsafe { $crate::Original::new($crate::Library::$library, $crate::c_name!($name)) };)*
        }

        $(const _: () = {
            unsafe extern "C" fn gated($a: $A, $b: $B, $c: $C $(, $d: $D)?, caller: usize) -> $ret {
                // SAFETY: the caller's arguments, forwarded unchanged.
                unsafe {
                    if $gate() {
                        $logic($a, $b, $c $(, $d)?, caller)
                    } else {
                        original_with_caller::$name.get()($a, $b, $c $(, $d)?)
                    }
                }
            }

            #[doc = $why]
            ///
            /// # Safety
            ///
            /// As the original: the caller passes what the C prototype asks for.
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name($a: $A, $b: $B, $c: $C $(, $d: $D)?) -> $ret {
                // The return address becomes the last argument; everything else stays.
                ::core::arch::naked_asm!($crate::caller_register!($($d)?), "jmp {}", sym gated)
            }
        };)*

        $crate::hook_table!($table, $($name $library $need $why)*);
    };
}

/// Loads the return address into the register after that of the last argument.
#[doc(hidden)]
#[macro_export]
macro_rules! caller_register {
    () => {
        "mov rcx, [rsp]"
    };
    ($fourth:ident) => {
        "mov r8, [rsp]"
    };
}

/// The table as text, in a section of its own: `hasten check` and the generated docs read it.
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
