/* A library with names of OpenSSL's for functions of its own, as AWS-LC, which calls them as any library calls a function:
 * through a slot that is bound at the first call. */
int SSL_do_handshake(const int *ssl) { return *ssl; }

int own_handshake(void) {
    int ssl = 42;
    return SSL_do_handshake(&ssl);
}
