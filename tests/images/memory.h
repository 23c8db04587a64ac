// A server and a client that talk in memory.
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>

static SSL_CTX *server_context, *client_context;

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            printf("%s is false\n", #condition); \
            exit(1); \
        } \
    } while (0)

static void make_contexts(void) {
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    CHECK(key && X509_set_pubkey(certificate, key) && X509_gmtime_adj(X509_getm_notBefore(certificate), 0));
    CHECK(X509_gmtime_adj(X509_getm_notAfter(certificate), 3600) && X509_sign(certificate, key, EVP_sha256()));
    server_context = SSL_CTX_new(TLS_server_method());
    client_context = SSL_CTX_new(TLS_client_method());
    CHECK(SSL_CTX_use_certificate(server_context, certificate) == 1 && SSL_CTX_use_PrivateKey(server_context, key) == 1);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

static BIO *pipe_between(SSL *from, SSL *to) {
    BIO *pipe = BIO_new(BIO_s_mem());
    BIO_up_ref(pipe);
    SSL_set0_wbio(from, pipe);
    SSL_set0_rbio(to, pipe);
    return pipe;
}
