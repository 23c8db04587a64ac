//! C++ objects with virtual functions.

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
}
