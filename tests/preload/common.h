/*
 * What the test programs share: certificates, sockets and clients.
 *
 * A program plays one scenario, named by its argument, prints what happened
 * and waits for the end of its input, so that the test can read the counters
 * of a process that still lives. What it prints must not depend on whether
 * it is accelerated: the test runs it both ways and compares.
 */
#ifndef HASTEN_TEST_COMMON_H
#define HASTEN_TEST_COMMON_H

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/param_build.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition) ((condition) ? (void)0 : check_failed(__FILE__, __LINE__, #condition))

__attribute__((unused, noreturn)) static void check_failed(const char *file, int line, const char *condition) {
    fprintf(stderr, "%s:%d: %s does not hold (errno: %s)\n", file, line, condition, strerror(errno));
    ERR_print_errors_fp(stderr);
    _exit(3);
}

/* The end of a scenario: the process stays until the test has read its counters. */
__attribute__((unused)) static int finish(void) {
    char byte;
    puts("end");
    CHECK(fflush(stdout) == 0);
    while (read(0, &byte, 1) > 0) {
    }
    return 0;
}

/* Which of the choices the scenario's name is. */
__attribute__((unused)) static bool is(const char *name, const char *choice) { return strcmp(name, choice) == 0; }

static EVP_PKEY *new_rsa_key(unsigned exponent, int primes, bool pss) {
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_id(pss ? EVP_PKEY_RSA_PSS : EVP_PKEY_RSA, NULL);
    EVP_PKEY *key = NULL;
    BIGNUM *e = BN_new();
    CHECK(BN_set_word(e, exponent) && EVP_PKEY_keygen_init(context) > 0);
    CHECK(EVP_PKEY_CTX_set_rsa_keygen_bits(context, 2048) > 0);
    CHECK(EVP_PKEY_CTX_set1_rsa_keygen_pubexp(context, e) > 0);
    CHECK(primes == 2 || EVP_PKEY_CTX_set_rsa_keygen_primes(context, primes) > 0);
    CHECK(EVP_PKEY_keygen(context, &key) > 0);
    BN_free(e);
    EVP_PKEY_CTX_free(context);
    return key;
}

/* A key that was made before: where making one takes long. */
static EVP_PKEY *key_in(const char *path) {
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    EVP_PKEY *key = PEM_read_PrivateKey(file, NULL, NULL, NULL);
    CHECK(key != NULL);
    fclose(file);
    return key;
}

/* A key that was damaged on its way: one of its CRT exponents is wrong, the rest is right. */
static EVP_PKEY *with_a_wrong_exponent(EVP_PKEY *key) {
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "RSA", NULL);
    OSSL_PARAM *params = NULL;
    EVP_PKEY *damaged = NULL;
    CHECK(EVP_PKEY_todata(key, EVP_PKEY_KEYPAIR, &params) == 1);
    OSSL_PARAM *exponent = OSSL_PARAM_locate(params, OSSL_PKEY_PARAM_RSA_EXPONENT1);
    CHECK(exponent != NULL);
    ((unsigned char *)exponent->data)[9] ^= 0x40;
    CHECK(EVP_PKEY_fromdata_init(context) > 0);
    CHECK(EVP_PKEY_fromdata(context, &damaged, EVP_PKEY_KEYPAIR, params) > 0);
    OSSL_PARAM_free(params);
    EVP_PKEY_CTX_free(context);
    EVP_PKEY_free(key);
    return damaged;
}

static EVP_PKEY *generated_rsa_key(const char *kind) {
    if (is(kind, "rsa-2048")) return EVP_RSA_gen(2048);
    if (is(kind, "rsa-3072")) return EVP_RSA_gen(3072);
    if (is(kind, "rsa-4096")) return EVP_RSA_gen(4096);
    /* What the engine does not have. */
    if (is(kind, "rsa-2056")) return EVP_RSA_gen(2056);
    if (is(kind, "rsa-e3")) return new_rsa_key(3, 2, false);
    if (is(kind, "rsa-three-primes")) return new_rsa_key(RSA_F4, 3, false);
    CHECK(is(kind, "rsa-pss"));
    return new_rsa_key(RSA_F4, 2, true);
}

static void keep_key(EVP_PKEY *key, const char *path) {
    char fresh[PATH_MAX];
    CHECK(snprintf(fresh, sizeof fresh, "%s.%d", path, (int)getpid()) < (int)sizeof fresh);
    int descriptor = open(fresh, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    FILE *file = fdopen(descriptor, "w");
    CHECK(file != NULL && PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) == 1 && fclose(file) == 0);
    CHECK(rename(fresh, path) == 0);
}

/*
 * Making an RSA key takes a hundred times as long as a handshake with it. In
 * the directory TEST_KEYS, programs find each other's: the first key of a kind
 * that a program asks for, the second, and so on, for an hour each.
 */
static EVP_PKEY *rsa_key(const char *kind) {
    static int number;
    const char *directory = getenv("TEST_KEYS");
    char path[PATH_MAX];
    struct stat status;
    if (directory == NULL) return generated_rsa_key(kind);
    CHECK(snprintf(path, sizeof path, "%s/%s-%d.pem", directory, kind, number++) < (int)sizeof path);
    if (stat(path, &status) == 0 && time(NULL) - status.st_mtime < 3600) return key_in(path);
    EVP_PKEY *key = generated_rsa_key(kind);
    keep_key(key, path);
    return key;
}

static BIGNUM *new_prime(int bits) {
    BIGNUM *prime = BN_new();
    CHECK(BN_generate_prime_ex(prime, bits, false, NULL, NULL, NULL) == 1);
    return prime;
}

/*
 * A key with a product of two primes in the place of one. Its numbers belong
 * together and its exponent is right, but what CRT makes of them is wrong: no
 * look at them shows that, only the signature does.
 */
static EVP_PKEY *with_a_composite_prime(void) {
    BIGNUM *p = BN_new(), *q = new_prime(1024), *n = BN_new(), *e = BN_new(), *d = BN_new(), *phi = BN_new();
    BIGNUM *dp = BN_new(), *dq = BN_new(), *qinv = BN_new(), *one[3];
    BN_CTX *scratch = BN_CTX_new();
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "RSA", NULL);
    EVP_PKEY *key = NULL;
    CHECK(BN_set_word(e, RSA_F4));
    do {
        BIGNUM *r = new_prime(512), *s = new_prime(512);
        CHECK(BN_mul(p, r, s, scratch) && BN_mul(n, p, q, scratch));
        one[0] = r, one[1] = s, one[2] = BN_dup(q);
        for (int i = 0; i < 3; i++) CHECK(BN_sub_word(one[i], 1));
        CHECK(BN_mul(phi, r, s, scratch) && BN_mul(phi, phi, one[2], scratch));
        CHECK(BN_copy(dp, p) && BN_sub_word(dp, 1));
        for (int i = 0; i < 2; i++) BN_free(one[i]);
        /* Where there is no inverse, others are tried. */
    } while (BN_mod_inverse(d, e, phi, scratch) == NULL || BN_mod_inverse(dp, e, dp, scratch) == NULL);
    CHECK(BN_mod(dq, d, one[2], scratch) && BN_mod_inverse(qinv, q, p, scratch) != NULL);
    const BIGNUM *numbers[] = {n, e, d, p, q, dp, dq, qinv};
    static const char *const names[] = {"n", "e", "d", "rsa-factor1", "rsa-factor2", "rsa-exponent1", "rsa-exponent2", "rsa-coefficient1"};
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    for (int i = 0; i < 8; i++) CHECK(OSSL_PARAM_BLD_push_BN(builder, names[i], numbers[i]) == 1);
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(builder);
    CHECK(EVP_PKEY_fromdata_init(context) > 0);
    CHECK(EVP_PKEY_fromdata(context, &key, EVP_PKEY_KEYPAIR, params) > 0);
    for (int i = 0; i < 8; i++) BN_free((BIGNUM *)numbers[i]);
    BN_free(phi);
    BN_free(one[2]);
    BN_CTX_free(scratch);
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(builder);
    EVP_PKEY_CTX_free(context);
    return key;
}

__attribute__((unused)) static EVP_PKEY *new_key(const char *kind) {
    if (kind[0] == '/') return key_in(kind);
    if (is(kind, "rsa-bad-crt")) return with_a_wrong_exponent(rsa_key("rsa-2048"));
    if (is(kind, "rsa-composite")) return with_a_composite_prime();
    if (strncmp(kind, "rsa-", 4) == 0) return rsa_key(kind);
    if (is(kind, "secp256k1")) return EVP_EC_gen("secp256k1");
    if (is(kind, "ed448")) return EVP_PKEY_Q_keygen(NULL, NULL, "ED448");
    if (is(kind, "p-384")) return EVP_EC_gen("P-384");
    if (is(kind, "p-521")) return EVP_EC_gen("P-521");
    if (is(kind, "ed25519")) return EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    CHECK(is(kind, "p-256"));
    return EVP_EC_gen("P-256");
}

__attribute__((unused)) static X509 *self_signed(EVP_PKEY *key) {
    X509 *certificate = X509_new();
    X509_NAME *name = X509_get_subject_name(certificate);
    const EVP_MD *digest = EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 || EVP_PKEY_get_base_id(key) == EVP_PKEY_ED448 ? NULL : EVP_sha256();

    CHECK(X509_set_version(certificate, X509_VERSION_3));
    CHECK(ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1));
    CHECK(X509_gmtime_adj(X509_getm_notBefore(certificate), -60));
    CHECK(X509_gmtime_adj(X509_getm_notAfter(certificate), 86400));
    CHECK(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1, -1, 0));
    CHECK(X509_set_issuer_name(certificate, name));
    CHECK(X509_set_pubkey(certificate, key));
    CHECK(X509_sign(certificate, key, digest) > 0);
    return certificate;
}

__attribute__((unused)) static void use_new_key(SSL_CTX *context, const char *kind) {
    EVP_PKEY *key = new_key(kind);
    X509 *certificate = self_signed(key);
    CHECK(SSL_CTX_use_certificate(context, certificate) == 1);
    CHECK(SSL_CTX_use_PrivateKey(context, key) == 1);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

__attribute__((unused)) static SSL_CTX *server_context(const char *kind) {
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    use_new_key(context, kind);
    return context;
}

__attribute__((unused)) static void set_blocking(int fd, bool blocking) {
    int flags = fcntl(fd, F_GETFL);
    CHECK(fcntl(fd, F_SETFL, blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK) == 0);
}

__attribute__((unused)) static struct sockaddr_in loopback(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

__attribute__((unused)) static int listen_on_loopback(int *port) {
    struct sockaddr_in address = loopback(0);
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&address, length) == 0 && listen(fd, 512) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
    *port = ntohs(address.sin_port);
    return fd;
}

__attribute__((unused)) static int connect_to(int port) {
    struct sockaddr_in address = loopback(port);
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

__attribute__((unused)) static SSL_CTX *client_context(int version) {
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (version != 0) {
        CHECK(SSL_CTX_set_min_proto_version(context, version) && SSL_CTX_set_max_proto_version(context, version));
    }
    return context;
}

/* Server and client in one thread, connected by memory; the server is looked at in the end. */
__attribute__((unused)) static bool talk_in_memory_and(SSL_CTX *server_ctx, SSL_CTX *client_ctx, void (*look)(SSL *)) {
    SSL *server = SSL_new(server_ctx), *client = SSL_new(client_ctx);
    BIO *to_server = BIO_new(BIO_s_mem()), *to_client = BIO_new(BIO_s_mem());
    char data[8] = {0};
    int done = 0;
    BIO_set_mem_eof_return(to_server, -1);
    BIO_set_mem_eof_return(to_client, -1);
    CHECK(BIO_up_ref(to_server) && BIO_up_ref(to_client));
    SSL_set_bio(server, to_server, to_client);
    SSL_set_bio(client, to_client, to_server);
    SSL_set_accept_state(server);
    SSL_set_connect_state(client);
    for (int i = 0; i < 20 && done < 2; i++) {
        int c = SSL_do_handshake(client);
        if (c < 0) CHECK(SSL_get_error(client, c) == SSL_ERROR_WANT_READ);
        int s = SSL_do_handshake(server);
        if (s < 0) CHECK(SSL_get_error(server, s) == SSL_ERROR_WANT_READ);
        done = (c == 1) + (s == 1);
    }
    bool good = done == 2 && SSL_write(client, "ping", 4) == 4 && SSL_read(server, data, 8) == 4 &&
                memcmp(data, "ping", 4) == 0 && ERR_peek_error() == 0;
    if (look != NULL) look(server);
    SSL_free(server);
    SSL_free(client);
    return good;
}

__attribute__((unused)) static bool talk_in_memory(SSL_CTX *server_ctx, SSL_CTX *client_ctx) {
    return talk_in_memory_and(server_ctx, client_ctx, NULL);
}

/*
 * A client that takes its time: it does not answer the server's first flight
 * before the server has found that it has to wait.
 */
__attribute__((unused)) static void hesitate(const SSL *ssl, int kind, int value) {
    (void)value;
    if (kind == SSL_CB_CONNECT_LOOP && SSL_get_state(ssl) == TLS_ST_CR_SRVR_HELLO) usleep(50000);
}

/* A whole visit: handshake, "ping", "pong", and the end. */
__attribute__((unused)) static bool visit(SSL_CTX *context, int port) {
    char answer[16] = {0};
    int fd = connect_to(port);
    SSL *ssl = SSL_new(context);
    bool good = SSL_set_fd(ssl, fd) == 1 && SSL_connect(ssl) == 1 && SSL_write(ssl, "ping", 4) == 4 &&
                SSL_read(ssl, answer, sizeof(answer)) == 4 && memcmp(answer, "pong", 4) == 0;
    if (!good) {
        ERR_print_errors_fp(stderr);
    } else {
        SSL_shutdown(ssl);
    }
    SSL_free(ssl);
    close(fd);
    return good;
}

struct visitor {
    pthread_t thread;
    SSL_CTX *context;
    int port, visits, failures;
};

__attribute__((unused)) static void *visitor_main(void *argument) {
    struct visitor *visitor = argument;
    for (int i = 0; i < visitor->visits; i++) visitor->failures += !visit(visitor->context, visitor->port);
    return NULL;
}

/* Clients in a process of their own: `threads` at a time, each with as many visits. Returns its id. */
__attribute__((unused)) static pid_t send_clients(int port, int threads, int visits, int version, bool hesitant) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child > 0) return child;
    /* A copy of a connection would keep it alive when the server closes it. */
    CHECK(close_range(3, ~0U, 0) == 0);
    struct visitor visitors[64];
    SSL_CTX *context = client_context(version);
    int failures = 0;
    if (hesitant) SSL_CTX_set_info_callback(context, hesitate);
    CHECK(threads <= 64);
    alarm(60);
    for (int i = 0; i < threads; i++) {
        visitors[i] = (struct visitor){.context = context, .port = port, .visits = visits};
        CHECK(pthread_create(&visitors[i].thread, NULL, visitor_main, &visitors[i]) == 0);
    }
    for (int i = 0; i < threads; i++) {
        CHECK(pthread_join(visitors[i].thread, NULL) == 0);
        failures += visitors[i].failures;
    }
    _exit(failures > 100 ? 100 : failures);
}

/* How many visits failed. */
__attribute__((unused)) static int failures_of(pid_t clients) {
    int status = 0;
    CHECK(waitpid(clients, &status, 0) == clients);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

#endif
