//! Engines that do the work of original functions.

use crate::vocabulary::names;

/// The name shown in place of an engine: the function that the program would have used.
pub const ORIGINAL: &str = "original";

names! {
    /// An engine that does the work of an original function; a process states on the page which ones it has.
    Engine {
        /// Intel's crypto_mb, eight operations at once, and RSA operations one at a time.
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
        /// Distribution of connections by the Dynamic Load Balancer.
        Dlb => "dlb",
        /// graviola, public-key operations one at a time.
        Graviola => "graviola",
        /// Our own deflate, with buckets of positions.
        Bucket => "bucket",
    }
}

names! {
    /// The kind of an engine. The page holds its number.
    EngineClass {
        Software => "software",
        Device => "device",
    }
}
