/*
 * The callbacks of the server of loops.c. Each looks at where it is: on the
 * stack of its thread, in a call about its own connection, with an empty queue
 * of errors. What they see must not depend on the library.
 */
#ifndef HASTEN_TEST_LOOPS_CALLBACKS_H
#define HASTEN_TEST_LOOPS_CALLBACKS_H

#include "loops.h"
#include "loops_keys.h"

enum { DEEP = 300 << 10 };

struct connection {
    SSL *ssl;
    int fd, index, waits;
    struct loop *loop;
    struct habit habit;
    struct outcome *outcome;
    bool registered, heard, answered, ended, moved, queued;
    int asked; /* how often the certificate callback was asked */
    enum { SHAKING, TALKING, CLOSING } stage;
    struct connection *next;
};

/* What must never happen. */
static _Atomic int off_stack, out_of_call;
/* Something that works, or comes, in a stock server did not. */
static _Atomic int in_vain;
static _Atomic int living; /* SSL objects */
static _Thread_local struct connection *current;
static _Thread_local char *stack_low, *stack_high;

static void find_stack(void) {
    pthread_attr_t attributes;
    void *low;
    size_t size;
    CHECK(pthread_getattr_np(pthread_self(), &attributes) == 0);
    CHECK(pthread_attr_getstack(&attributes, &low, &size) == 0);
    pthread_attr_destroy(&attributes);
    stack_low = low;
    stack_high = stack_low + size;
}

static void expect(bool good, const struct connection *connection, const char *what) {
    if (good) return;
    in_vain++;
    fprintf(stderr, "connection %d: %s (errno: %s)\n", connection->index, what, strerror(errno));
}

/* Signs with the server's own key, for a purpose of its own. */
static bool can_sign(SSL *ssl) {
    unsigned char signature[512];
    size_t length = sizeof(signature);
    EVP_PKEY *key = SSL_get_privatekey(ssl);
    EVP_PKEY_CTX *inner = NULL;
    EVP_MD_CTX *signs = EVP_MD_CTX_new(), *verifies = EVP_MD_CTX_new();
    bool good = EVP_DigestSignInit_ex(signs, &inner, "SHA256", NULL, NULL, key, NULL) == 1 &&
                EVP_DigestSignUpdate(signs, "loops", 5) == 1 && EVP_DigestSignFinal(signs, signature, &length) == 1 &&
                EVP_DigestVerifyInit_ex(verifies, NULL, "SHA256", NULL, NULL, key, NULL) == 1 &&
                EVP_DigestVerifyUpdate(verifies, "loops", 5) == 1 &&
                EVP_DigestVerifyFinal(verifies, signature, length) == 1;
    EVP_MD_CTX_free(signs);
    EVP_MD_CTX_free(verifies);
    return good;
}

/* Needs as much stack as interpreters do. */
__attribute__((noinline)) static void go_deep(void) {
    volatile char room[DEEP];
    for (size_t i = 0; i < sizeof(room); i += 4096) room[i] = 1;
}

static struct connection *enter(const SSL *ssl) {
    struct connection *connection = SSL_get_app_data(ssl);
    char here;
    if (stack_low == NULL) find_stack();
    off_stack += &here < stack_low || &here >= stack_high;
    out_of_call += current == NULL || current->ssl != ssl;
    if (plan.deep && plan.stacks > 4 * DEEP) go_deep();
    return connection;
}

static uint64_t mixed(uint64_t sum, uint64_t value) { return (sum ^ value) * 0x100000001b3; }

/* Steps of the state machine; how often a call returns depends on time. */
static void first_informed(const SSL *ssl, int kind, int value) {
    struct connection *connection = enter(ssl);
    if (kind != SSL_CB_ACCEPT_LOOP) return;
    connection->outcome->first_events++;
    connection->outcome->states = mixed(connection->outcome->states, SSL_get_state(ssl) * 2 + value);
}

static void second_informed(const SSL *ssl, int kind, int value) {
    struct connection *connection = enter(ssl);
    if (kind != SSL_CB_ACCEPT_LOOP) return;
    connection->outcome->second_events++;
    connection->outcome->states = mixed(connection->outcome->states, SSL_get_state(ssl) * 2 + value);
}

typedef void informed(const SSL *, int, int);

static void chained(const SSL *ssl, int kind, int value);

/* Passes on to whoever is registered otherwise, as agents do that are put into a server. */
static void pass_on(const SSL *ssl, informed *next, int kind, int value) {
    if (next != NULL && next != chained) next(ssl, kind, value);
}

static void chained(const SSL *ssl, int kind, int value) {
    enter(ssl);
    pass_on(ssl, SSL_get_info_callback(ssl), kind, value);
    pass_on(ssl, SSL_CTX_get_info_callback(SSL_get_SSL_CTX(ssl)), kind, value);
}

static void messaged(int out, int version, int type, const void *data, size_t length, SSL *ssl, void *argument) {
    (void)version, (void)argument;
    struct connection *connection = enter(ssl);
    if (type != SSL3_RT_HANDSHAKE || length == 0) return;
    uint64_t *sum = &connection->outcome->messages;
    *sum = mixed(*sum, ((const unsigned char *)data)[0] * 2 + out);
}

static void key_logged(const SSL *ssl, const char *line) {
    struct connection *connection = enter(ssl);
    connection->outcome->keys_logged += line[0] != 0;
}

static int named(SSL *ssl, int *alert, void *second) {
    (void)alert;
    enter(ssl);
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    if (second != NULL && name != NULL && is(name, "second")) CHECK(SSL_set_SSL_CTX(ssl, second) == second);
    return SSL_TLSEXT_ERR_OK;
}

static int protocol_selected(SSL *ssl, const unsigned char **out, unsigned char *length, const unsigned char *in,
                             unsigned in_length, void *argument) {
    (void)argument;
    enter(ssl);
    if (in_length < 5) return SSL_TLSEXT_ERR_NOACK;
    *out = in + 1;
    *length = in[0];
    return SSL_TLSEXT_ERR_OK;
}

/* May ask to be asked again. */
static int certificate_wanted(SSL *ssl, void *argument) {
    struct connection *connection = enter(ssl);
    (void)argument;
    if (plan.signs) expect(can_sign(ssl), connection, "cannot sign in a callback");
    return plan.retries && connection->asked++ == 0 ? -1 : 1;
}

static int hello_seen(SSL *ssl, int *alert, void *argument) {
    (void)alert, (void)argument;
    enter(ssl);
    return SSL_CLIENT_HELLO_SUCCESS;
}

static int verified(int good, X509_STORE_CTX *store) {
    (void)good;
    enter(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
    return 1;
}

static SSL_TICKET_RETURN ticket_taken(SSL *ssl, SSL_SESSION *session, const unsigned char *name, size_t length,
                                      SSL_TICKET_STATUS status, void *argument) {
    (void)session, (void)name, (void)length, (void)argument;
    enter(ssl);
    if (status == SSL_TICKET_SUCCESS) return SSL_TICKET_RETURN_USE;
    return status == SSL_TICKET_SUCCESS_RENEW ? SSL_TICKET_RETURN_USE_RENEW : SSL_TICKET_RETURN_IGNORE_RENEW;
}

static int ticket_made(SSL *ssl, void *argument) {
    (void)argument;
    enter(ssl);
    return 1;
}

static void born(void *object, void *data, CRYPTO_EX_DATA *extra, int index, long number, void *argument) {
    (void)object, (void)data, (void)extra, (void)index, (void)number, (void)argument;
    living++;
}

static void buried(void *object, void *data, CRYPTO_EX_DATA *extra, int index, long number, void *argument) {
    (void)object, (void)data, (void)extra, (void)index, (void)number, (void)argument;
    living--;
}

static SSL_CTX *context_of(enum kind kind, bool second) {
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    use_key(context, kind);
    CHECK(SSL_CTX_set_session_id_context(context, (const unsigned char *)"loops", 5) == 1);
    if (plan.hello_retry) CHECK(SSL_CTX_set1_groups_list(context, "X25519:P-256") == 1);
    if (plan.no_tickets) SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
    if (plan.asks_for_certificate) SSL_CTX_set_verify(context, SSL_VERIFY_PEER, plan.verifies ? verified : NULL);
    if (plan.asks_for_certificate && !plan.verifies) {
        CHECK(X509_STORE_add_cert(SSL_CTX_get_cert_store(context), certificates[kind]) == 1);
    }
    if (plan.informs) SSL_CTX_set_info_callback(context, second ? second_informed : first_informed);
    if (plan.messages) SSL_CTX_set_msg_callback(context, messaged);
    if (plan.logs_keys) SSL_CTX_set_keylog_callback(context, key_logged);
    if (plan.selects_protocol) SSL_CTX_set_alpn_select_cb(context, protocol_selected, NULL);
    if (plan.certificates) SSL_CTX_set_cert_cb(context, certificate_wanted, NULL);
    if (plan.certificates) SSL_CTX_set_client_hello_cb(context, hello_seen, NULL);
    if (plan.tickets) CHECK(SSL_CTX_set_session_ticket_cb(context, ticket_made, ticket_taken, NULL) == 1);
    return context;
}

static SSL_CTX *server_contexts(void) {
    CHECK(SSL_get_ex_new_index(0, NULL, born, NULL, buried) > 0);
    enum kind kind = plan.ecdsa ? ECDSA_KEY : RSA_KEY, other = plan.ecdsa ? RSA_KEY : ECDSA_KEY;
    SSL_CTX *first = context_of(kind, false), *second = NULL;
    if (plan.second_context) second = context_of(other, true);
    SSL_CTX_set_tlsext_servername_callback(first, named);
    SSL_CTX_set_tlsext_servername_arg(first, second);
    return first;
}

#endif
