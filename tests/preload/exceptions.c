/*
 * Callbacks that throw, in a server with suspended handshakes: what they throw arrives where SSL_do_handshake was
 * called, past libssl's frames and whatever lies between.
 *
 * Its other half is throwing.cc.
 */
#include "serve.h"

enum { CONNECTIONS = 24 };

/* Throws, where it is its turn to do so. */
void perhaps_throw(int connection);
/* As SSL_do_handshake; 2 for an exception. */
int handshake_or_catch(SSL *ssl);

static int connection, thrown;

static int handshake(SSL *ssl) {
    int result = handshake_or_catch(ssl);
    thrown += result == 2;
    return result;
}

static int on_certificate(SSL *ssl, void *argument) {
    (void)ssl, (void)argument;
    perhaps_throw(connection);
    return 1;
}

static int on_name(SSL *ssl, int *alert, void *argument) {
    (void)ssl, (void)alert, (void)argument;
    perhaps_throw(connection);
    return SSL_TLSEXT_ERR_OK;
}

/* The last one that a handshake calls: it has been suspended and gone on by then. */
static void on_progress(const SSL *ssl, int where, int result) {
    (void)ssl, (void)result;
    if (where & SSL_CB_HANDSHAKE_DONE) perhaps_throw(connection);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    int served = 0;
    open_server("p-256");
    if (is(what, "certificate")) SSL_CTX_set_cert_cb(server, on_certificate, NULL);
    if (is(what, "name")) SSL_CTX_set_tlsext_servername_callback(server, on_name);
    if (is(what, "progress")) SSL_CTX_set_info_callback(server, on_progress);
    pid_t visitors = send_clients(port, 1, CONNECTIONS, is(what, "progress") ? TLS1_2_VERSION : 0, true);
    for (connection = 0; connection < CONNECTIONS; connection++) served += serve_by(handshake, NULL);
    printf("served %d, thrown %d, failed visits %d\n", served, thrown, failures_of(visitors));
    return finish();
}
