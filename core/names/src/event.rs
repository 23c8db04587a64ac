//! Events.

use crate::vocabulary::names;

names! {
    /// An event other than an operation or a bypass.
    Event {
        HandshakeStarted => "handshake-started",
        HandshakeFinished => "handshake-finished",
        HandshakeFailed => "handshake-failed",
        /// A handshake was suspended to wait for its batch.
        Suspended => "suspended",
        /// A suspended handshake was resumed.
        Resumed => "resumed",
        /// A suspended handshake was abandoned: its connection was closed.
        Cancelled => "cancelled",
        /// TLS 1.3 key schedule computed directly, not through EVP_KDF.
        HkdfDirect => "hkdf-direct",
        /// Finished MAC computed directly, not through EVP_Q_mac.
        MacDirect => "mac-direct",
        /// An algorithm fetch answered from the cache.
        FetchCached => "fetch-cached",
        /// A batch of ephemeral keys was made for the pool.
        PoolRefilled => "pool-refilled",
        /// A handshake took its ephemeral key from the pool.
        PoolHit => "pool-hit",
        /// The pool was empty; the original function made the key.
        PoolMiss => "pool-miss",
        /// A signature failed its verification and was not released.
        VerifyFailed => "verify-failed",
        /// A child dropped the state inherited through fork.
        ForkReset => "fork-reset",
        /// Readiness reported by hasten for resumed connections.
        SyntheticWakeups => "synthetic-wakeups",
        /// Turns of the event loop that ran at least one batch.
        TurnsBatched => "turns-batched",
        /// A deflate stream was opened, or reopened.
        DeflateStreams => "deflate-streams",
        /// Bytes of input to be compressed.
        DeflateBytesIn => "deflate-bytes-in",
        /// Bytes of compressed output.
        DeflateBytesOut => "deflate-bytes-out",
        /// Bytes compressed by ISA-L.
        DeflateIsal => "deflate-isal-bytes",
        /// Bytes compressed by libdeflate.
        DeflateLibdeflate => "deflate-libdeflate-bytes",
        /// Bytes compressed by zlib-rs.
        DeflateZlibRs => "deflate-zlib-rs-bytes",
        /// Bytes compressed by the original zlib.
        DeflateOriginal => "deflate-original-bytes",
        /// Bytes whose compressed form was inflated again and compared before it was output.
        DeflateVerified => "deflate-verified-bytes",
        /// Wrong results of an engine; each was redone by the original.
        DeflateMismatch => "deflate-mismatch",
        /// Bytes held back to be compressed together.
        DeflateBuffered => "deflate-buffered-bytes",
        /// Estimated CPU time saved by compressing with another engine, in nanoseconds.
        DeflateSavedNs => "deflate-saved-ns",
        /// An inflate stream was opened, or reopened.
        InflateStreams => "inflate-streams",
        /// Bytes of compressed input.
        InflateBytesIn => "inflate-bytes-in",
        /// Bytes of decompressed output.
        InflateBytesOut => "inflate-bytes-out",
        /// Bytes decompressed by hasten's own inflate.
        InflateHasten => "inflate-hasten-bytes",
        /// Bytes decompressed by the original zlib.
        InflateOriginal => "inflate-original-bytes",
        /// Estimated CPU time saved by decompressing with another engine, in nanoseconds.
        InflateSavedNs => "inflate-saved-ns",
        /// An engine's breaker opened.
        BreakerOpened => "breaker-opened",
        /// Bytes written by hasten itself, where no engine could make them smaller.
        DeflateHasten => "deflate-hasten-bytes",
        /// A suspended handshake ran on because its thread was about to block elsewhere.
        CalledIn => "called-in",
        /// A suspended handshake ran on because the program did not come back for it in time, although it was reported.
        Overdue => "called-in-overdue",
        /// A thread other than its own called a suspended handshake.
        ForeignCall => "foreign-thread-call",
        /// A key exchange by a hybrid group, done by hasten.
        HybridExchange => "hybrid-exchange",
        /// A server's handshake finished whose group is hybrid, whoever did the exchange.
        HybridHandshake => "hybrid-handshake",
        /// A client's handshake finished.
        ClientHandshake => "client-handshake",
        /// A client's handshake finished whose group is hybrid, likewise.
        ClientHybridHandshake => "client-hybrid-handshake",
        /// Bytes read from the read cache.
        ReadCacheHitBytes => "read-cache-hit-bytes",
        /// Bytes of files for the read cache that the disk had to deliver.
        ReadCacheMissBytes => "read-cache-miss-bytes",
        /// Bytes written into the read cache.
        ReadCacheKeptBytes => "read-cache-kept-bytes",
        /// Blocks of the read cache with a wrong checksum; each was read from the disk.
        ReadCacheDamaged => "read-cache-damaged",
        /// Trials that found the read cache's device no faster than the disk.
        ReadCacheRests => "read-cache-rests",
        /// Logs made on the fast device.
        WalMade => "wal-logs-made",
        /// Logs made at home, because the fast device could not take them.
        WalAtHome => "wal-logs-at-home",
        /// Bytes compressed by our own engine with buckets.
        DeflateBucket => "deflate-bucket-bytes",
        /// Far memory could not be had for an object, and was not tried again for a moment.
        TierFull => "tier-full",
    }
}
