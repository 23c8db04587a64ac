// Handshakes of a client in memory: by every group and version, through each function that can make them, resumed, requested
// again, looked at, on a small stack, and with answers that are wrong. The server is of the same library.
// OpenSSL 3.0 or later runs it; the headers may be older than it.
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "memory.h"

typedef enum { SHAKES, CONNECTS, READS, WRITES, LOOKS, MIXES } Way;
static const char *way_names[] = {"do_handshake", "connect", "read", "write", "looked at", "mixed"};

static int step(SSL *client, Way way, int call) {
    char byte;
    EVP_PKEY *key = NULL;
    int done;
    switch (way) {
    case SHAKES: return SSL_do_handshake(client);
    case CONNECTS: return SSL_connect(client);
    case READS:
        done = SSL_read(client, &byte, 1);
        return SSL_is_init_finished(client) ? 1 : done;
    case WRITES: return SSL_write(client, "w", 1);
    case LOOKS:
        done = SSL_do_handshake(client);
        if (SSL_get_tmp_key(client, &key)) EVP_PKEY_free(key);
        return done;
    case MIXES:
        return call % 2 ? SSL_write(client, "w", 1) : SSL_do_handshake(client);
    }
    return -1;
}

// Byte `at` of what the server sends first becomes another.
static int wrong_at = -1;

static int talk(Way way, int version, const char *groups, const char *its_groups, SSL_SESSION **session) {
    char byte = 0;
    SSL *server = SSL_new(server_context), *client = SSL_new(client_context);
    if (!SSL_set1_groups_list(client, groups) || !SSL_set1_groups_list(server, its_groups)) {
        SSL_free(server);
        SSL_free(client);
        ERR_clear_error();
        return -1;
    }
    SSL_set_min_proto_version(client, version);
    SSL_set_max_proto_version(client, version);
    SSL_set_accept_state(server);
    SSL_set_connect_state(client);
    if (session && *session) SSL_set_session(client, *session);
    BIO *answers = pipe_between(server, client);
    pipe_between(client, server);
    int done = 0, failed = 0;
    for (int i = 0; i < 8 && done != 2 && !failed; i++) {
        int mine = step(client, way, i), its = SSL_do_handshake(server);
        if (i == 0 && wrong_at >= 0) {
            char *bytes;
            CHECK(BIO_get_mem_data(answers, &bytes) > wrong_at);
            bytes[wrong_at] ^= 0x55;
        }
        done = (mine == 1) + (its == 1);
        failed = mine <= 0 && SSL_get_error(client, mine) == SSL_ERROR_SSL;
    }
    if (failed) printf("%s, ", ERR_reason_error_string(ERR_peek_last_error()));
    ERR_clear_error();
    int works = done == 2 && SSL_write(server, "x", 1) == 1 && SSL_read(client, &byte, 1) == 1 && byte == 'x';
    works = works && SSL_write(client, "y", 1) == 1;
    while (works && byte != 'y') works = SSL_read(server, &byte, 1) == 1;
    if (works) printf("%s, group %lx, ", SSL_get_cipher(client), SSL_ctrl(client, 134, 0, NULL));
    if (session && works) {
        int resumed = *session != NULL;
        CHECK(SSL_session_reused(client) == resumed);
        SSL_SESSION_free(*session);
        *session = SSL_get1_session(client);
    }
    EVP_PKEY *its = NULL, *mine = NULL;
    int both = SSL_get_peer_tmp_key(client, &its) && SSL_get_tmp_key(server, &mine);
    printf("keys %d, ", both && EVP_PKEY_eq(its, mine) == 1);
    EVP_PKEY_free(its);
    EVP_PKEY_free(mine);
    its = mine = NULL;
    unsigned char *public = NULL, *same = NULL;
    size_t length = SSL_get_tmp_key(client, &mine) ? EVP_PKEY_get1_encoded_public_key(mine, &public) : 0;
    size_t received = SSL_get_peer_tmp_key(server, &its) ? EVP_PKEY_get1_encoded_public_key(its, &same) : 0;
    printf("own %zu %d, ", length, length == received && !memcmp(public, same, length));
    OPENSSL_free(public);
    OPENSSL_free(same);
    EVP_PKEY_free(mine);
    EVP_PKEY_free(its);
    SSL_set_shutdown(server, SSL_SENT_SHUTDOWN);
    SSL_set_shutdown(client, SSL_SENT_SHUTDOWN);
    SSL_free(server);
    SSL_free(client);
    return works;
}

static const char *each[] = {"X25519", "P-256", "P-384", "P-521", "X25519MLKEM768", "SecP256r1MLKEM768", "SecP384r1MLKEM1024"};

static void every_way(void) {
    for (int way = SHAKES; way <= MIXES; way++) {
        for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
            for (size_t i = 0; i < sizeof(each) / sizeof(*each); i++) {
                if (version == TLS1_2_VERSION && i > 3) continue;
                // In TLS 1.2 the certificate's curve has to be among the groups.
                char groups[64];
                snprintf(groups, sizeof(groups), version == TLS1_2_VERSION && i != 1 ? "%s:P-256" : "%s", each[i]);
                printf("%s %x %s: ", way_names[way], version, each[i]);
                printf("%d\n", talk(way, version, groups, groups, NULL));
            }
        }
    }
}

static void resumed(void) {
    for (size_t i = 0; i < sizeof(each) / sizeof(*each); i++) {
        SSL_SESSION *session = NULL;
        printf("resumed %s: ", each[i]);
        for (int round = 0; round < 3; round++) printf("%d ", talk(SHAKES, TLS1_3_VERSION, each[i], each[i], &session));
        puts("");
        SSL_SESSION_free(session);
    }
}

static void requested_again(void) {
    printf("requested again: %d\n", talk(SHAKES, TLS1_3_VERSION, "X25519:P-384", "P-384", NULL));
    printf("requested again: %d\n", talk(SHAKES, TLS1_3_VERSION, "X25519:X25519MLKEM768", "X25519MLKEM768", NULL));
    printf("requested again: %d\n", talk(SHAKES, TLS1_3_VERSION, "X25519MLKEM768:P-256", "P-256", NULL));
    printf("none in common: %d\n", talk(SHAKES, TLS1_3_VERSION, "X25519", "P-256", NULL));
}

// The server's hello, which is in plain text, is damaged in the share: at its length, in ML-KEM's part, and in the point.
static void damaged(void) {
    static const int places[] = {3, 43, 100, 127, 135, 700, 1200};
    for (size_t i = 0; i < sizeof(each) / sizeof(*each); i++) {
        for (size_t at = 0; at < sizeof(places) / sizeof(*places); at++) {
            // A short hello is followed by what is encrypted, of a length that signatures vary.
            if (places[at] > 127 && i < 4) continue;
            wrong_at = places[at];
            printf("damaged at %d, %s: ", wrong_at, each[i]);
            printf("%d\n", talk(SHAKES, TLS1_3_VERSION, each[i], each[i], NULL));
        }
    }
    wrong_at = -1;
}

static void small(void) {
    for (size_t i = 0; i < sizeof(each) / sizeof(*each); i++) {
        printf("on a small stack, %s: ", each[i]);
        printf("%d\n", talk(SHAKES, TLS1_3_VERSION, each[i], each[i], NULL));
    }
}

static void on_a_stack_of(size_t size, void (*what)(void)) {
    static ucontext_t home, away;
    char *stack = mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(stack != MAP_FAILED && mprotect(stack, 4096, PROT_NONE) == 0);
    getcontext(&away);
    away.uc_stack.ss_sp = stack + 4096;
    away.uc_stack.ss_size = size;
    away.uc_link = &home;
    makecontext(&away, what, 0);
    swapcontext(&home, &away);
    munmap(stack, size + 4096);
}

int main(void) {
    make_contexts();
    every_way();
    resumed();
    requested_again();
    damaged();
    on_a_stack_of(64 << 10, small);
    every_way();
    SSL_CTX_free(server_context);
    SSL_CTX_free(client_context);
    // The test reads the counters of a process that still lives.
    puts("end");
    fflush(NULL);
    while (read(0, &(char){0}, 1) > 0) {
    }
    return 0;
}
