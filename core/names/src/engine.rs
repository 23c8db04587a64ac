//! What does the work of original functions.

use crate::vocabulary::names;

/// What stands where an engine might: the function that the program would have used.
pub const ORIGINAL: &str = "original";

names! {
    /// Something that does the work of an original function; on the page a process says which it has.
    Engine {
        /// Intel's crypto_mb, eight operations at once.
        Multibuffer => "multibuffer",
        /// Intel's ISA-L, deflate.
        Isal => "isal",
        /// libdeflate.
        Libdeflate => "libdeflate",
        /// zlib-rs.
        ZlibRs => "zlib-rs",
        /// Asymmetric cryptography by QuickAssist, through qatlib.
        Qat => "qat",
        /// Compression by QuickAssist, through QATzip.
        Qatzip => "qatzip",
        /// Compression by the In-Memory Analytics Accelerator, through QPL.
        Qpl => "qpl",
        /// Copies by the Data Streaming Accelerator, through DML.
        Dml => "dml",
        /// Hand-out of connections by the Dynamic Load Balancer.
        Dlb => "dlb",
    }
}

names! {
    /// What an engine is made of. On the page is its number.
    EngineClass {
        Software => "software",
        Device => "device",
    }
}
