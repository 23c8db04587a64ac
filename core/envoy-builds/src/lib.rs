//! The builds of Envoy whose code is known: one table, by which the plan judges a program before it starts, and the
//! library the process it is in.
//!
//! Envoy links its libraries statically, so none of its calls can be interposed. But it reaches its extensions through
//! virtual functions, and the tables of those are data. A replacement is called as the original was and works on Envoy's
//! objects, so it must know them. `cargo xtask envoy` reads from a build where the classes are, and fingerprints the code
//! that shows their layout. All addresses count from the beginning of the program.

#![forbid(unsafe_code)]

mod builds;
mod fingerprint;

pub use builds::BUILDS;
pub use fingerprint::fingerprint;

/// A build of Envoy.
#[derive(Debug, PartialEq, Eq)]
pub struct Build {
    /// As its makers call it.
    pub release: &'static str,
    /// The linker's note. Envoy's is the commit it was built from, so builds with other options may have the same.
    pub build_id: &'static str,
    /// What compresses and decompresses bodies.
    pub gzip: Gzip,
    /// What does TLS.
    pub tls: Tls,
}

/// What compresses and decompresses bodies in a build.
#[derive(Debug, PartialEq, Eq)]
pub struct Gzip {
    /// [`COMPRESSOR_FACTORY`].
    pub compressors: Class,
    /// [`DECOMPRESSOR_FACTORY`].
    pub decompressors: Class,
    /// [`ZLIB_DECOMPRESSOR`].
    pub zlib_decompressor: Class,
    /// In it: a pointer to the counter of damaged bodies.
    pub data_errors: u32,
    /// In the table of that counter: `void inc()`, in bytes.
    pub increment: u32,
    /// `bool Runtime::runtimeFeatureEnabled(absl::string_view feature)`
    pub feature_enabled: u64,
    /// The text [`BOMB_PROTECTION`].
    pub bomb_protection: u64,
    /// [`BUFFER`].
    pub buffer: Class,
    /// The type information of [`COMPRESSOR`].
    pub compressor: u64,
    /// The type information of [`DECOMPRESSOR`].
    pub decompressor: u64,
}

/// What does TLS in a build.
#[derive(Debug, PartialEq, Eq)]
pub struct Tls {
    /// [`HANDSHAKER`].
    pub handshaker: Class,
    /// The same, from its second base on, which is `Ssl::Handshaker`. Behind that come its fields.
    pub handshaker_base: Class,
    /// [`SOCKET`].
    pub socket: Class,
    /// The same, from [`SOCKET_CALLBACKS`] on.
    pub callbacks: Class,
    /// [`CONNECTION`], as its transport socket calls it back.
    pub connection: Class,
    /// How often reading was disabled, from there: 32 bits.
    pub read_disabled: u32,
    /// [`IO_HANDLE`].
    pub io_handle: Class,
    /// [`X25519`].
    pub x25519: Class,
    /// [`EC`].
    pub ec: Class,
    /// [`HYBRID`].
    pub hybrid: Class,
    pub boring: Boring,
    /// Where the program has the address of `epoll_wait`.
    pub epoll_wait: &'static [u64],
}

/// Functions of BoringSSL, and what their code shows of its objects.
#[derive(Debug, PartialEq, Eq)]
pub struct Boring {
    /// `int SSL_do_handshake(SSL *ssl)`, by which `ssl` leads to its [`SSL_STATE`], and that to its [`STATE_HANDSHAKE`].
    pub do_handshake: Code,
    /// `ssl_private_key_sign`
    pub sign: Code,
    /// In a handshake: the credential, which is a [`Credential`].
    pub credential: u32,
    /// `RSA *EVP_PKEY_get0_RSA(const EVP_PKEY *pkey)`
    pub get_rsa: Code,
    /// `EC_KEY *EVP_PKEY_get0_EC_KEY(const EVP_PKEY *pkey)`
    pub get_ec: Code,
    /// What signs with an `RSA`.
    pub rsa: Code,
    /// In an `RSA`: the first of eight `BIGNUM *`: n, e, d, p, q, d mod (p - 1), d mod (q - 1), 1 / q mod p.
    pub rsa_numbers: u32,
    /// What signs with an `EC_KEY`.
    pub ecdsa: Code,
    /// In an `EC_KEY`: the private number, a pointer to a `BIGNUM` and its words.
    pub ec_private: u32,
    /// `void *OPENSSL_malloc(size_t size)`
    pub allocate: u64,
    /// `void OPENSSL_free(void *memory)`
    pub free: u64,
    /// `int CBB_add_bytes(CBB *cbb, const uint8_t *data, size_t len)`
    pub add_bytes: u64,
    /// `int MLKEM768_parse_public_key(MLKEM768_public_key *out, CBS *in)`
    pub parse_mlkem: u64,
    /// `void MLKEM768_encap(uint8_t *ciphertext, uint8_t *secret, const MLKEM768_public_key *key)`
    pub encap_mlkem: u64,
}

/// A class and its virtual functions.
#[derive(Debug, PartialEq, Eq)]
pub struct Class {
    /// The address of its table of virtual functions.
    pub table: u64,
    /// How far in front of the object that has this table the whole object begins.
    pub base: usize,
    /// The functions that matter here, in a fixed order.
    pub functions: &'static [Function],
}

/// A virtual function.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Its place in the table.
    pub slot: usize,
    /// Its code: the function that is called, and the one, if any, to which it only jumps.
    pub code: &'static [Code],
}

/// A piece of code.
#[derive(Debug, PartialEq, Eq)]
pub struct Code {
    pub address: u64,
    pub length: usize,
    /// [`fingerprint`] of its bytes.
    pub fingerprint: u64,
}

/// `GzipCompressorFactory`, by the name in its run-time type information.
pub const COMPRESSOR_FACTORY: &str =
    "N5Envoy10Extensions11Compression4Gzip10Compressor21GzipCompressorFactoryE";

/// The interface of what it makes.
pub const COMPRESSOR: &str = "N5Envoy11Compression10Compressor10CompressorE";

/// `GzipDecompressorFactory`.
pub const DECOMPRESSOR_FACTORY: &str =
    "N5Envoy10Extensions11Compression4Gzip12Decompressor23GzipDecompressorFactoryE";

/// The interface of what it makes.
pub const DECOMPRESSOR: &str = "N5Envoy11Compression12Decompressor12DecompressorE";

/// `ZlibDecompressorImpl`: what it makes.
pub const ZLIB_DECOMPRESSOR: &str =
    "N5Envoy10Extensions11Compression4Gzip12Decompressor20ZlibDecompressorImplE";

/// The switch by which operators allow any ratio between a body and its compressed form.
pub const BOMB_PROTECTION: &str = "envoy.reloadable_features.enable_compression_bomb_protection";

/// The class of all buffers, or their base.
pub const BUFFER: &str = "N5Envoy6Buffer9OwnedImplE";

/// `SslHandshakerImpl`: the handshake of a connection, and what is known of it afterwards.
pub const HANDSHAKER: &str = "N5Envoy10Extensions16TransportSockets3Tls17SslHandshakerImplE";

/// `SslSocket`: the TLS of a connection.
pub const SOCKET: &str = "N5Envoy10Extensions16TransportSockets3Tls9SslSocketE";

/// Where in it `Ssl::HandshakeCallbacks` are.
pub const SOCKET_CALLBACKS: usize = 16;

/// `ServerConnectionImpl`.
pub const CONNECTION: &str = "N5Envoy7Network20ServerConnectionImplE";

/// `IoSocketHandleImpl`: a socket of the kernel's.
pub const IO_HANDLE: &str = "N5Envoy7Network18IoSocketHandleImplE";

/// BoringSSL's key exchange by X25519.
pub const X25519: &str = "N4bssl12_GLOBAL__N_114X25519KeyShareE";

/// BoringSSL's key exchange by curves of NIST.
pub const EC: &str = "N4bssl12_GLOBAL__N_110ECKeyShareE";

/// BoringSSL's key exchange by X25519 and ML-KEM-768.
pub const HYBRID: &str = "N4bssl12_GLOBAL__N_122X25519MLKEM768KeyShareE";

/// In an `SSL`: the pointer to the state of its connection.
pub const SSL_STATE: usize = 0x30;

/// In that: the pointer to the handshake.
pub const STATE_HANDSHAKE: usize = 0x118;

/// The function of [`COMPRESSOR_FACTORY`].
pub mod compressors {
    /// `CompressorPtr createCompressor()`, where `CompressorPtr` is a `std::unique_ptr`.
    pub const CREATE: usize = 0;
}

/// The function of [`DECOMPRESSOR_FACTORY`].
pub mod decompressors {
    /// `DecompressorPtr createDecompressor(const std::string& stats_prefix)`, where `DecompressorPtr` is a `std::unique_ptr`.
    pub const CREATE: usize = 0;
}

/// The function of [`ZLIB_DECOMPRESSOR`].
pub mod zlib_decompressor {
    /// `void decompress(const Buffer::Instance& input, Buffer::Instance& output)`
    pub const DECOMPRESS: usize = 0;
}

/// What a [`DECOMPRESSOR_FACTORY`] consists of. The code of `createDecompressor` reads these fields and nothing else of it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DecompressorFactory {
    /// The address of its table of virtual functions.
    pub functions: usize,
    /// Where statistics are kept.
    pub scope: usize,
    /// Plus 16, which asks for gzip's header.
    pub window_bits: i32,
    /// How much is output at a time, in bytes.
    pub chunk_size: u32,
    /// How many times as long as its compressed form a body may be.
    pub max_inflate_ratio: u64,
}

/// What a [`COMPRESSOR_FACTORY`] consists of. The code of `createCompressor` reads these fields and nothing else of it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CompressorFactory {
    /// The address of its table of virtual functions.
    pub functions: usize,
    /// zlib's number.
    pub level: i64,
    /// zlib's number.
    pub strategy: u64,
    pub mem_level: i32,
    /// Plus 16, which asks for gzip's header.
    pub window_bits: i32,
    /// How much is output at a time, in bytes.
    pub chunk_size: u32,
}

/// The functions of [`BUFFER`].
pub mod buffer {
    /// `void add(const void* data, uint64_t size)`
    pub const ADD: usize = 0;
    /// `void drain(uint64_t size)`
    pub const DRAIN: usize = 1;
    /// `RawSlice frontSlice() const`
    pub const FRONT_SLICE: usize = 2;
    /// `uint64_t length() const`
    pub const LENGTH: usize = 3;
    /// `RawSliceVector getRawSlices(absl::optional<uint64_t> max_slices) const`, where a `RawSliceVector` is an
    /// `absl::InlinedVector` with room for 16.
    pub const RAW_SLICES: usize = 4;
    /// `void copyOut(uint64_t start, uint64_t size, void* data) const`
    pub const COPY_OUT: usize = 5;
}

/// The function of [`HANDSHAKER`] and its base.
pub mod handshaker {
    /// `PostIoAction doHandshake()`
    pub const DO_HANDSHAKE: usize = 0;
}

/// The functions of [`SOCKET`].
pub mod socket {
    /// `~SslSocket()`
    pub const DESTROY: usize = 0;
    /// The same, and the memory is freed.
    pub const DELETE: usize = 1;
    /// `void closeSocket(ConnectionEvent event)`; since 1.39 `void closeSocket(ConnectionEvent event, bool is_reset)`, which
    /// sends no alert if that is set.
    pub const CLOSE: usize = 2;
}

/// The function of `Ssl::HandshakeCallbacks`.
pub mod callbacks {
    /// `TransportSocketCallbacks* transportSocketCallbacks()`
    pub const TRANSPORT: usize = 0;
}

/// The functions of `TransportSocketCallbacks`.
pub mod connection {
    /// `IoHandle& ioHandle()`
    pub const IO_HANDLE: usize = 0;
    /// `void setTransportSocketIsReadable()`
    pub const SET_READABLE: usize = 1;
}

/// The function of [`IO_HANDLE`].
pub mod io_handle {
    /// `int fdDoNotUse() const`
    pub const FD: usize = 0;
}

/// The functions of [`X25519`].
pub mod x25519 {
    /// `bool Generate(CBB *out)`
    pub const GENERATE: usize = 0;
    /// `bool Encap(CBB *out, Array<uint8_t> *secret, uint8_t *alert, Span<const uint8_t> peer)`, which calls the others.
    pub const ENCAP: usize = 1;
    /// `bool Decap(Array<uint8_t> *secret, uint8_t *alert, Span<const uint8_t> ciphertext)`
    pub const DECAP: usize = 2;
}

/// The function of [`EC`].
pub mod ec {
    /// As that of [`X25519`](super::X25519).
    pub const GENERATE: usize = 0;
}

/// The function of [`HYBRID`].
pub mod hybrid {
    /// As that of [`X25519`](super::X25519).
    pub const ENCAP: usize = 0;
}

impl Build {
    /// The build with this build-id, in hexadecimal digits.
    pub fn of(build_id: &str) -> Option<&'static Self> {
        BUILDS.iter().find(|build| build.build_id == build_id)
    }
}

impl Gzip {
    /// The classes, with their names.
    pub fn classes(&self) -> [(&'static str, &Class); 4] {
        [
            (COMPRESSOR_FACTORY, &self.compressors),
            (DECOMPRESSOR_FACTORY, &self.decompressors),
            (ZLIB_DECOMPRESSOR, &self.zlib_decompressor),
            (BUFFER, &self.buffer),
        ]
    }

    /// The type information of interfaces, with their names.
    pub fn interfaces(&self) -> [(&'static str, u64); 2] {
        [(COMPRESSOR, self.compressor), (DECOMPRESSOR, self.decompressor)]
    }
}

impl Tls {
    /// The classes, with their names.
    pub fn classes(&self) -> [(&'static str, &Class); 9] {
        [
            (HANDSHAKER, &self.handshaker),
            (HANDSHAKER, &self.handshaker_base),
            (SOCKET, &self.socket),
            (SOCKET, &self.callbacks),
            (CONNECTION, &self.connection),
            (IO_HANDLE, &self.io_handle),
            (X25519, &self.x25519),
            (EC, &self.ec),
            (HYBRID, &self.hybrid),
        ]
    }
}

impl Boring {
    /// The functions whose code is known, with their names.
    pub fn functions(&self) -> [(&'static str, &Code); 6] {
        [
            ("SSL_do_handshake", &self.do_handshake),
            ("ssl_private_key_sign", &self.sign),
            ("EVP_PKEY_get0_RSA", &self.get_rsa),
            ("EVP_PKEY_get0_EC_KEY", &self.get_ec),
            ("rsa_default_private_transform", &self.rsa),
            ("ECDSA_sign", &self.ecdsa),
        ]
    }
}

/// The releases in the table, newest first, as a sentence has them.
pub fn releases() -> String {
    BUILDS.iter().map(|build| build.release).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_are_unique_and_complete() {
        for (at, build) in BUILDS.iter().enumerate() {
            assert!(BUILDS[..at].iter().all(|other| other.build_id != build.build_id), "{}", build.release);
            assert_eq!(build.build_id.len(), 40, "{}", build.release);
            assert_eq!(build.gzip.buffer.functions.len(), 6, "{}", build.release);
            for (name, class) in build.gzip.classes().into_iter().chain(build.tls.classes()) {
                assert_eq!(class.table % 8, 0, "{} {name}", build.release);
                assert!(
                    class.functions.iter().all(|function| !function.code.is_empty()),
                    "{}",
                    build.release
                );
            }
        }
    }

    #[test]
    fn build_is_found_by_its_id() {
        let first = &BUILDS[0];
        assert_eq!(Build::of(first.build_id), Some(first));
        assert_eq!(Build::of(""), None);
    }
}
