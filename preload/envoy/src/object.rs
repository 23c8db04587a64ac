//! C++ objects with virtual functions.

use core::mem::transmute;
use core::ptr::NonNull;

/// An object that begins with a pointer to its class's virtual functions.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Object {
    functions: *const usize,
}

impl Object {
    /// The address of its table.
    pub(crate) fn table(&self) -> usize {
        self.functions.addr()
    }

    /// A function of its class.
    ///
    /// # Safety
    ///
    /// The class has so many.
    pub(crate) unsafe fn function(&self, slot: usize) -> usize {
        // SAFETY: as the contract says.
        unsafe { self.functions.add(slot).read() }
    }

    /// `delete object`, of a class whose first functions are its destructors.
    ///
    /// # Safety
    ///
    /// Nobody uses the object any more.
    pub(crate) unsafe fn delete(object: NonNull<Self>) {
        /// The second of a class's two destructors frees its memory, too.
        const DELETE: usize = 1;
        // SAFETY: as the contract says.
        unsafe {
            let delete: unsafe extern "C" fn(NonNull<Self>) = transmute(object.as_ref().function(DELETE));
            delete(object);
        }
    }
}
