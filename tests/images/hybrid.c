// Handshakes by X25519MLKEM768 in memory, with a program that looks at the client's key, on its own and on a small stack.
// OpenSSL 3.5 or later runs it; the headers may be older.
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "memory.h"

static EVP_PKEY *taken;
static int looks;

// From the moment that the server has the key, before and after it is used.
static void look(const SSL *ssl, int where, int result) {
    EVP_PKEY *key = NULL;
    (void)where, (void)result;
    if (!looks || !SSL_get_peer_tmp_key((SSL *)ssl, &key)) return;
    EVP_PKEY_free(taken);
    taken = key;
}

static int encapsulates(EVP_PKEY *key) {
    unsigned char wrapped[2000], secret[64];
    size_t wrapped_len = sizeof(wrapped), secret_len = sizeof(secret);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);
    int done = context && EVP_PKEY_encapsulate_init(context, NULL) == 1
        && EVP_PKEY_encapsulate(context, wrapped, &wrapped_len, secret, &secret_len) == 1;
    EVP_PKEY_CTX_free(context);
    return done && wrapped_len == 1120 && secret_len == 64;
}

static int same_public(EVP_PKEY *one, EVP_PKEY *other) {
    unsigned char *a = NULL, *b = NULL;
    size_t length = EVP_PKEY_get1_encoded_public_key(one, &a), its = EVP_PKEY_get1_encoded_public_key(other, &b);
    int same = length == its && length == 1216 && !memcmp(a, b, length);
    OPENSSL_free(a);
    OPENSSL_free(b);
    return same;
}

static const char *groups, *name;

static void talk(void) {
    char byte = 0;
    SSL *server = SSL_new(server_context), *client = SSL_new(client_context);
    EVP_PKEY *later = NULL, *its = NULL;
    CHECK(SSL_set1_groups_list(client, groups) == 1);
    SSL_set_accept_state(server);
    SSL_set_connect_state(client);
    SSL_set_info_callback(server, look);
    pipe_between(server, client);
    pipe_between(client, server);
    int done = 0;
    for (int i = 0; i < 8 && done != 2; i++) done = (SSL_do_handshake(client) == 1) + (SSL_do_handshake(server) == 1);
    int works = done == 2 && SSL_write(client, "x", 1) == 1 && SSL_read(server, &byte, 1) == 1 && byte == 'x';
    int here = SSL_get_peer_tmp_key(server, &later), there = SSL_get_tmp_key(client, &its);
    printf("%s: works %d, looked %d, encapsulates %d, kept %d, encapsulates %d, same as the client's %d\n", name, works,
           taken != NULL, taken && encapsulates(taken), here, later && encapsulates(later),
           there && later && same_public(later, its));
    EVP_PKEY_free(later);
    EVP_PKEY_free(its);
    EVP_PKEY_free(taken);
    taken = NULL;
    SSL_free(server);
    SSL_free(client);
}

static void talk_on_a_stack_of(size_t size) {
    static ucontext_t home, away;
    char *stack = mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(stack != MAP_FAILED && mprotect(stack, 4096, PROT_NONE) == 0);
    getcontext(&away);
    away.uc_stack.ss_sp = stack + 4096;
    away.uc_stack.ss_size = size;
    away.uc_link = &home;
    makecontext(&away, talk, 0);
    swapcontext(&home, &away);
    munmap(stack, size + 4096);
}

int main(void) {
    make_contexts();
    CHECK(SSL_CTX_set1_groups_list(server_context, "X25519MLKEM768") == 1);
    for (looks = 0; looks < 2; looks++) {
        name = "alone", groups = "X25519MLKEM768";
        for (int i = 0; i < 3; i++) talk();
        name = "among others", groups = "X25519MLKEM768:X25519:P-256";
        talk();
        name = "requested again", groups = "X25519:X25519MLKEM768";
        talk();
        name = "on a small stack", groups = "X25519MLKEM768";
        for (int i = 0; i < 3; i++) talk_on_a_stack_of(24 << 10);
    }
    SSL_CTX_free(server_context);
    SSL_CTX_free(client_context);
    return 0;
}
