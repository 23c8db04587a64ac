//! The hook table: what is interposed, in which library, and why.
//!
//! This is the only list. It generates the functions that are put into slots, their originals, and the ELF section from
//! which `hasten check` and docs/hooks.md are made.

use core::ffi::{c_char, c_int, c_long, c_uint, c_void};

use hasten_hook::exec;
use libc::{epoll_event, fd_set, nfds_t, pollfd, sigset_t, sockaddr, socklen_t, timespec, timeval};

use crate::event_loop::{blocking, epoll, fdcalls, loans, locks};
use crate::handshake::{self, calls, cancel, suspension};
use crate::openssl::*;
use crate::openssl::{decapsulation, encapsulation, exchange, fetch, kdf, random, shortcuts, sign, tickets};

hasten_hook::slots! {
    table HOOKS;

    /// Runs the handshake so that it can be left in the middle, to wait for a batch.
    required Ssl by Program fn SSL_do_handshake(ssl: *mut Ssl) -> c_int = handshake::do_handshake;
    /// As SSL_do_handshake, under its older name.
    required Ssl by Program fn SSL_accept(ssl: *mut Ssl) -> c_int = handshake::do_handshake;
    /// As SSL_do_handshake, for clients: their key exchange is done by the engines, too.
    optional Ssl by Program fn SSL_connect(ssl: *mut Ssl) -> c_int = handshake::connect;
    /// As SSL_do_handshake, for servers that take early data.
    optional Ssl by Program fn SSL_read_early_data(ssl: *mut Ssl, data: *mut c_void, len: usize, read: *mut usize) -> c_int = handshake::read_early_data;
    /// Ends a suspended handshake before its SSL goes.
    required Ssl by Program fn SSL_free(ssl: *mut Ssl) = calls::free;
    /// Ends a suspended handshake before its SSL starts over.
    optional Ssl by Program fn SSL_clear(ssl: *mut Ssl) -> c_int = calls::clear;
    /// Says "want read" for a suspended handshake.
    required Ssl by Program fn SSL_get_error(ssl: *const Ssl, result: c_int) -> c_int = calls::get_error;
    /// Says "reading" for a suspended handshake.
    optional Ssl by Program fn SSL_want(ssl: *const Ssl) -> c_int = calls::want;
    /// Keeps reads out of a suspended handshake.
    optional Ssl by Program fn SSL_read(ssl: *mut Ssl, data: *mut c_void, len: c_int) -> c_int = calls::read;
    /// Keeps reads out of a suspended handshake.
    optional Ssl by Program fn SSL_read_ex(ssl: *mut Ssl, data: *mut c_void, len: usize, done: *mut usize) -> c_int = calls::transfer_ex;
    /// Keeps reads out of a suspended handshake.
    optional Ssl by Program fn SSL_peek(ssl: *mut Ssl, data: *mut c_void, len: c_int) -> c_int = calls::read;
    /// Keeps writes out of a suspended handshake.
    optional Ssl by Program fn SSL_write(ssl: *mut Ssl, data: *const c_void, len: c_int) -> c_int = calls::write;
    /// Keeps writes out of a suspended handshake.
    optional Ssl by Program fn SSL_write_ex(ssl: *mut Ssl, data: *mut c_void, len: usize, done: *mut usize) -> c_int = calls::transfer_ex;
    /// Keeps peeks out of a suspended handshake.
    optional Ssl by Program fn SSL_peek_ex(ssl: *mut Ssl, data: *mut c_void, len: usize, done: *mut usize) -> c_int = calls::transfer_ex;
    /// Keeps writes out of a suspended handshake.
    optional Ssl by Program fn SSL_write_early_data(ssl: *mut Ssl, data: *mut c_void, len: usize, done: *mut usize) -> c_int = calls::transfer_ex;
    /// An SSL with two owners is not suspended: one may free it while the other goes on.
    optional Ssl by Program fn SSL_up_ref(ssl: *mut Ssl) -> c_int = calls::up_ref;
    /// During a handshake the copy is another reference.
    optional Ssl by Program fn SSL_dup(ssl: *mut Ssl) -> *mut Ssl = calls::duplicate;

    /// Encodes a session for its ticket once instead of twice.
    optional Ssl by Ssl fn i2d_SSL_SESSION(session: *mut Session, out: *mut *mut u8) -> c_int = tickets::encode_session;
    /// Gives libssl the session itself instead of a decoded copy.
    optional Ssl by Ssl fn d2i_SSL_SESSION(into: *mut *mut Session, bytes: *mut *const u8, len: c_long) -> *mut Session = tickets::decode_session;
    /// As d2i_SSL_SESSION, which OpenSSL 3.2 and later call it.
    optional Ssl by Ssl fn d2i_SSL_SESSION_ex(into: *mut *mut Session, bytes: *mut *const u8, len: c_long, libctx: *mut LibCtx, properties: *const c_char) -> *mut Session = tickets::decode_session_in;

    /// Sees callbacks that may run while a handshake is called in.
    optional Ssl by Program fn SSL_CTX_set_msg_callback(context: *mut c_void, callback: *const c_void) = suspension::set_callback;
    /// Sees callbacks that may run while a handshake is called in.
    optional Ssl by Program fn SSL_set_msg_callback(ssl: *mut c_void, callback: *const c_void) = suspension::set_callback;
    /// Sees callbacks that may run while a handshake is called in.
    optional Ssl by Program fn SSL_CTX_callback_ctrl(context: *mut c_void, command: c_int, callback: *const c_void) -> c_long = suspension::callback_control;
    /// Sees callbacks that may run while a handshake is called in.
    optional Ssl by Program fn SSL_callback_ctrl(ssl: *mut c_void, command: c_int, callback: *const c_void) -> c_long = suspension::callback_control;
    /// Sees callbacks that may run while a handshake is called in.
    optional Ssl by Program fn SSL_CTX_set_security_callback(context: *mut c_void, callback: *const c_void) = suspension::set_callback;
    /// Sees callbacks that may run while a handshake is called in.
    optional Ssl by Program fn SSL_set_security_callback(ssl: *mut c_void, callback: *const c_void) = suspension::set_callback;
    /// Sees callbacks that may run while a handshake is called in.
    optional Ssl by Program fn SSL_CTX_add_custom_ext(context: *mut SslCtx, kind: c_uint, when: c_uint, add: *const c_void, free: *const c_void, add_data: *mut c_void, parse: *const c_void, parse_data: *mut c_void) -> c_int = suspension::add_extension;
    /// Sees callbacks that may run while a handshake is called in.
    optional Ssl by Program fn SSL_CTX_add_server_custom_ext(context: *mut SslCtx, kind: c_uint, add: *const c_void, free: *const c_void, add_data: *mut c_void, parse: *const c_void, parse_data: *mut c_void) -> c_int = suspension::add_server_extension;
    /// Sees callbacks that may run while a handshake is called in.
    optional Ssl by Program fn SSL_CTX_set_tlsext_ticket_key_evp_cb(context: *mut c_void, callback: *const c_void) -> c_int = suspension::try_set_callback;
    /// Sees callbacks that may run while a handshake is called in.
    optional Ssl by Program fn SSL_CTX_set_session_ticket_cb(context: *mut SslCtx, generate: *const c_void, decrypt: *const c_void, argument: *mut c_void) -> c_int = suspension::set_ticket_callbacks;
    /// Sees callbacks that may run while a handshake is called in.
    optional Ssl by Program fn SSL_CTX_sess_set_new_cb(context: *mut c_void, callback: *const c_void) = suspension::set_callback;
    /// Sees callbacks that may run while a handshake is called in.
    optional Ssl by Program fn SSL_CTX_sess_set_remove_cb(context: *mut c_void, callback: *const c_void) = suspension::set_callback;
    /// Sees callbacks that may run while a handshake is called in.
    optional Ssl by Program fn SSL_CTX_set_cert_verify_callback(context: *mut c_void, callback: *const c_void, argument: *mut c_void) = suspension::set_callback_with;
    /// Sees callbacks that may run while a handshake is called in.
    optional Ssl by Program fn SSL_CTX_set_record_padding_callback(context: *mut c_void, callback: *const c_void) = suspension::set_callback;
    /// Sees callbacks that may run while a handshake is called in.
    optional Ssl by Program fn SSL_set_record_padding_callback(ssl: *mut c_void, callback: *const c_void) -> c_int = suspension::try_set_callback;
    /// Sees callbacks that may run while a handshake is called in.
    optional Crypto by Program fn BIO_set_callback(bio: *mut c_void, callback: *const c_void) = suspension::set_callback;
    /// Sees callbacks that may run while a handshake is called in.
    optional Crypto by Program fn BIO_set_callback_ex(bio: *mut c_void, callback: *const c_void) = suspension::set_callback;
    /// Sees BIOs that hold an SSL.
    optional Ssl by Program fn BIO_f_ssl() -> *const BioMethod = suspension::ssl_bio_method;
    /// Sees BIOs that hold an SSL.
    optional Ssl by Program fn BIO_new_ssl(context: *mut SslCtx, client: c_int) -> *mut Bio = suspension::new_ssl_bio;
    /// Sees BIOs that read and write while a handshake is called in.
    optional Crypto by Program fn BIO_meth_set_read(method: *mut c_void, function: *const c_void) -> c_int = suspension::set_bio_method;
    /// Sees BIOs that read and write while a handshake is called in.
    optional Crypto by Program fn BIO_meth_set_read_ex(method: *mut c_void, function: *const c_void) -> c_int = suspension::set_bio_method;

    /// Sees BIOs that say they are sockets.
    optional Crypto by Program fn BIO_meth_new(kind: c_int, name: *const c_char) -> *mut c_void = suspension::new_bio_method;

    /// Notes a signature that the engine will make.
    optional Crypto by Ssl fn EVP_DigestSignInit_ex(context: *mut EvpMdCtx, pctx: *mut *mut EvpPkeyCtx, name: *const c_char, libctx: *mut LibCtx, properties: *const c_char, pkey: *mut EvpPkey, params: *const Param) -> c_int = sign::digest_sign_init;
    /// Notes the padding of a signature.
    optional Crypto by Ssl fn EVP_PKEY_CTX_set_rsa_padding(context: *mut EvpPkeyCtx, padding: c_int) -> c_int = sign::set_rsa_padding;
    /// Notes the salt of a signature.
    optional Crypto by Ssl fn EVP_PKEY_CTX_set_rsa_pss_saltlen(context: *mut EvpPkeyCtx, len: c_int) -> c_int = sign::set_pss_salt_len;
    /// Signs, in a batch.
    required Crypto by Ssl fn EVP_DigestSign(context: *mut EvpMdCtx, signature: *mut u8, len: *mut usize, message: *const u8, message_len: usize) -> c_int = sign::digest_sign;
    /// Remembers which digests a key signs with.
    optional Crypto by Ssl fn EVP_PKEY_digestsign_supports_digest(pkey: *mut EvpPkey, libctx: *mut LibCtx, name: *const c_char, properties: *const c_char) -> c_int = sign::supports_digest;

    /// Frees a context, but no stand-in.
    optional Crypto by Ssl fn EVP_PKEY_CTX_free(context: *mut EvpPkeyCtx) = shortcuts::context_free;
    /// Takes the parameters of a group from the stock.
    optional Crypto by Ssl fn EVP_PKEY_paramgen_init(context: *mut EvpPkeyCtx) -> c_int = exchange::paramgen_init;
    /// Takes the parameters of a group from the stock.
    optional Crypto by Ssl fn EVP_PKEY_paramgen(context: *mut EvpPkeyCtx, out: *mut *mut EvpPkey) -> c_int = exchange::paramgen;
    /// Learns the group of a key exchange.
    optional Crypto by Ssl fn EVP_PKEY_CTX_set_group_name(context: *mut EvpPkeyCtx, name: *const c_char) -> c_int = exchange::set_group_name;
    /// Takes an ephemeral key pair from the pool.
    optional Crypto by Ssl fn EVP_PKEY_keygen_init(context: *mut EvpPkeyCtx) -> c_int = exchange::keygen_init;
    /// Takes an ephemeral key pair from the pool.
    optional Crypto by Ssl fn EVP_PKEY_keygen(context: *mut EvpPkeyCtx, out: *mut *mut EvpPkey) -> c_int = exchange::keygen;
    /// Learns the peer's public key.
    optional Crypto by Ssl fn EVP_PKEY_set1_encoded_public_key(pkey: *mut EvpPkey, public: *const u8, len: usize) -> c_int = exchange::set_public_key;
    /// Notes a shared secret that the engine will compute.
    optional Crypto by Ssl fn EVP_PKEY_derive_init(context: *mut EvpPkeyCtx) -> c_int = exchange::derive_init;
    /// Notes the peer of a shared secret.
    optional Crypto by Ssl fn EVP_PKEY_derive_set_peer(context: *mut EvpPkeyCtx, peer: *mut EvpPkey) -> c_int = exchange::derive_set_peer;
    /// Computes the shared secret in a batch.
    required Crypto by Ssl fn EVP_PKEY_derive(context: *mut EvpPkeyCtx, out: *mut u8, len: *mut usize) -> c_int = exchange::derive;
    /// Notes a hybrid shared secret that the engines will compute.
    optional Crypto by Ssl fn EVP_PKEY_encapsulate_init(context: *mut EvpPkeyCtx, params: *const Param) -> c_int = encapsulation::encapsulate_init;
    /// Computes the hybrid shared secret: its classical half in a batch, ML-KEM at once.
    optional Crypto by Ssl fn EVP_PKEY_encapsulate(context: *mut EvpPkeyCtx, wrapped: *mut u8, wrapped_len: *mut usize, secret: *mut u8, secret_len: *mut usize) -> c_int = encapsulation::encapsulate;
    /// Notes a hybrid shared secret that the engines will take out.
    optional Crypto by Ssl fn EVP_PKEY_decapsulate_init(context: *mut EvpPkeyCtx, params: *const Param) -> c_int = decapsulation::decapsulate_init;
    /// Takes out the hybrid shared secret of a client.
    optional Crypto by Ssl fn EVP_PKEY_decapsulate(context: *mut EvpPkeyCtx, secret: *mut u8, secret_len: *mut usize, wrapped: *const u8, wrapped_len: usize) -> c_int = decapsulation::decapsulate;
    /// Reads a hybrid key share that OpenSSL does not have.
    optional Crypto by Ssl fn EVP_PKEY_get1_encoded_public_key(pkey: *mut EvpPkey, out: *mut *mut u8) -> usize = decapsulation::encoded_public_key;
    /// Recycles the key objects of the key exchange.
    optional Crypto by Ssl fn EVP_PKEY_free(pkey: *mut EvpPkey) = exchange::pkey_free;
    /// Sees a key object leave the key exchange.
    optional Crypto by Ssl fn EVP_PKEY_up_ref(pkey: *mut EvpPkey) -> c_int = exchange::pkey_up_ref;

    /// Gives libssl a stand-in for a key exchange that the engine will do.
    optional Crypto by Ssl fn EVP_PKEY_CTX_new_from_name(libctx: *mut LibCtx, name: *const c_char, properties: *const c_char) -> *mut EvpPkeyCtx = exchange::context_from_name;
    /// Gives libssl a stand-in for a key exchange that the engine will do, or the key as OpenSSL would have it.
    required Crypto by Ssl fn EVP_PKEY_CTX_new_from_pkey(libctx: *mut LibCtx, pkey: *mut EvpPkey, properties: *const c_char) -> *mut EvpPkeyCtx = exchange::context_from_key;
    /// Derives the secrets of TLS 1.2 and 1.3 directly.
    optional Crypto by Ssl fn EVP_KDF_derive(context: *mut EvpKdfCtx, out: *mut u8, len: usize, params: *const Param) -> c_int = kdf::derive;
    /// Finds the key derivation functions of TLS without a search.
    optional Crypto by Ssl fn EVP_KDF_fetch(libctx: *mut LibCtx, name: *const c_char, properties: *const c_char) -> *mut EvpKdf = fetch::kdf;
    /// Finds the cipher of session tickets without a search.
    optional Crypto by Ssl fn EVP_CIPHER_fetch(libctx: *mut LibCtx, name: *const c_char, properties: *const c_char) -> *mut EvpCipher = fetch::cipher;
    /// Finds the MAC of session tickets without a search.
    optional Crypto by Ssl fn EVP_MAC_fetch(libctx: *mut LibCtx, name: *const c_char, properties: *const c_char) -> *mut EvpMac = fetch::mac;
    /// Computes the Finished MAC directly.
    optional Crypto by Ssl fn EVP_Q_mac(libctx: *mut LibCtx, name: *const c_char, properties: *const c_char, digest: *const c_char, params: *const Param, key: *const c_void, key_len: usize, data: *const u8, len: usize, out: *mut u8, size: usize, out_len: *mut usize) -> *mut u8 = kdf::quick_mac;

    /// Draws what the peer will see from a pool.
    optional Crypto by Ssl fn RAND_bytes(bytes: *mut u8, len: c_int) -> c_int = random::rand_bytes;
    /// Draws what the peer will see from a pool.
    optional Crypto by Ssl fn RAND_bytes_ex(libctx: *mut LibCtx, bytes: *mut u8, len: usize, strength: c_uint) -> c_int = random::rand_bytes_ex;
    /// Sends the session tickets of a handshake in one write.
    optional Crypto by Ssl fn BIO_ctrl(bio: *mut Bio, command: c_int, number: c_long, pointer: *mut c_void) -> c_long = tickets::bio_control;
    /// Ends a handshake that is given up, without a word to the server's callbacks.
    required Crypto by Ssl fn BUF_MEM_free(buffer: *mut c_void) = cancel::buffer_free;
    /// Lets no ticket be lost with libssl's write buffer.
    optional Crypto by Ssl fn BIO_pop(bio: *mut Bio) -> *mut Bio = tickets::bio_pop;

    /// Stops the shortcuts when a provider is loaded at run time.
    optional Crypto by Program fn OSSL_PROVIDER_load(libctx: *mut LibCtx, name: *const c_char) -> *mut Provider = shortcuts::provider_load;
    /// Stops the shortcuts when a provider is loaded at run time.
    optional Crypto by Program fn OSSL_PROVIDER_try_load(libctx: *mut LibCtx, name: *const c_char, retain_fallbacks: c_int) -> *mut Provider = shortcuts::provider_try_load;
    /// Stops the shortcuts when a provider is unloaded at run time.
    optional Crypto by Program fn OSSL_PROVIDER_unload(provider: *mut Provider) -> c_int = shortcuts::provider_unload;
    /// Stops the shortcuts when the default properties change at run time.
    optional Crypto by Program fn EVP_set_default_properties(libctx: *mut LibCtx, properties: *const c_char) -> c_int = shortcuts::set_default_properties;
    /// Stops the shortcuts when FIPS mode is switched at run time.
    optional Crypto by Program fn EVP_default_properties_enable_fips(libctx: *mut LibCtx, enable: c_int) -> c_int = shortcuts::enable_fips;

    /// Leaves handshakes to OpenSSL when random numbers come from somewhere else.
    optional Crypto by Program fn RAND_set_rand_method(method: *const c_void) -> c_int = shortcuts::set_random;

    /// The clock of batching, and the way back for suspended handshakes.
    required C by Program fn epoll_wait(epfd: c_int, events: *mut epoll_event, max: c_int, timeout: c_int) -> c_int = epoll::wait;
    /// As epoll_wait.
    required C by Program fn epoll_pwait(epfd: c_int, events: *mut epoll_event, max: c_int, timeout: c_int, mask: *const sigset_t) -> c_int = epoll::pwait;
    /// Learns under which cookie the server knows a connection.
    required C by Program fn epoll_ctl(epfd: c_int, operation: c_int, fd: c_int, event: *mut epoll_event) -> c_int = epoll::control;
    /// A new epoll instance has no past.
    optional C by Program fn epoll_create1(flags: c_int) -> c_int = fdcalls::epoll_create1;
    /// A new epoll instance has no past.
    optional C by Program fn epoll_create(size: c_int) -> c_int = fdcalls::epoll_create;
    /// A new connection has no past.
    required C by Program fn accept4(fd: c_int, address: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int = fdcalls::accept4;
    /// A new connection has no past.
    required C by Program fn accept(fd: c_int, address: *mut sockaddr, len: *mut socklen_t) -> c_int = fdcalls::accept;
    /// A closed descriptor must not be reported as readable.
    required C by Program fn close(fd: c_int) -> c_int = fdcalls::close;
    /// A descriptor that gets another meaning has no past.
    optional C by Program fn dup2(old: c_int, new: c_int) -> c_int = fdcalls::dup2;
    /// A descriptor that gets another meaning has no past.
    optional C by Program fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int = fdcalls::dup3;
    /// Calls in the handshakes that this wait cannot report, and reports those that are ready.
    required C by Program fn poll(list: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int = loans::poll;
    /// As poll.
    optional C by Program fn ppoll(list: *mut pollfd, count: nfds_t, timeout: *const timespec, mask: *const sigset_t) -> c_int = loans::ppoll;
    /// As poll, from programs that were compiled with checks.
    optional C by Program fn __poll_chk(list: *mut pollfd, count: nfds_t, timeout: c_int, size: usize) -> c_int = loans::checked_poll;
    /// As poll, from programs that were compiled with checks.
    optional C by Program fn __ppoll_chk(list: *mut pollfd, count: nfds_t, timeout: *const timespec, mask: *const sigset_t, size: usize) -> c_int = loans::checked_ppoll;
    /// As poll.
    optional C by Program fn select(count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set, timeout: *mut timeval) -> c_int = loans::select;
    /// As poll.
    optional C by Program fn pselect(count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set, timeout: *const timespec, mask: *const sigset_t) -> c_int = loans::pselect;
    /// Learns that sockets may block where they are closed.
    optional C by Program fn setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, len: socklen_t) -> c_int = blocking::set_option;
    /// Lets a handshake that is called in find nothing more to read.
    required C by Program fn read(fd: c_int, data: *mut c_void, len: usize) -> isize = fdcalls::read;
    /// Learns the descriptor of a connection whose BIO is the server's own.
    optional C by Program fn recv(fd: c_int, data: *mut c_void, len: usize, flags: c_int) -> isize = fdcalls::recv;
    /// Calls in what is suspended while another thread keeps the lock.
    optional C by Application fn pthread_mutex_lock(lock: *mut c_void) -> c_int = locks::mutex;
    /// Calls in what is suspended while another thread keeps the lock.
    optional C by Application fn mtx_lock(lock: *mut c_void) -> c_int = locks::c_mutex;
    /// Calls in what is suspended while another thread keeps the lock.
    optional C by Application fn pthread_rwlock_rdlock(lock: *mut c_void) -> c_int = locks::shared;
    /// Calls in what is suspended while another thread keeps the lock.
    optional C by Application fn pthread_rwlock_wrlock(lock: *mut c_void) -> c_int = locks::exclusive;
    /// Calls in what is suspended while another thread keeps the lock.
    optional C by Application fn pthread_spin_lock(lock: *mut c_void) -> c_int = locks::spin;
    /// Keeps the library loaded in a server that replaces its own executable.
    optional C by Program fn execve(path: *const c_char, argv: *const *const c_char, envp: *const *const c_char) -> c_int = exec::execve;
}
