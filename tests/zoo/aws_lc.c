/* A library that links AWS-LC: handshakes of its own in a process that has OpenSSL, too. */
#include <stddef.h>

/* AWS-LC's headers are not those of the system. */
typedef struct bio_st BIO;
typedef struct ec_key_st EC_KEY;
typedef struct evp_md_st EVP_MD;
typedef struct evp_pkey_st EVP_PKEY;
typedef struct ssl_ctx_st SSL_CTX;
typedef struct ssl_st SSL;
typedef struct x509_st X509;

int BIO_new_bio_pair(BIO **one, size_t one_size, BIO **other, size_t other_size);
int EC_KEY_generate_key(EC_KEY *key);
EC_KEY *EC_KEY_new_by_curve_name(int curve);
int EVP_PKEY_assign_EC_KEY(EVP_PKEY *pkey, EC_KEY *key);
void EVP_PKEY_free(EVP_PKEY *pkey);
EVP_PKEY *EVP_PKEY_new(void);
const EVP_MD *EVP_sha256(void);
const void *TLS_method(void);
SSL_CTX *SSL_CTX_new(const void *method);
void SSL_CTX_free(SSL_CTX *context);
int SSL_CTX_use_PrivateKey(SSL_CTX *context, EVP_PKEY *pkey);
int SSL_CTX_use_certificate(SSL_CTX *context, X509 *certificate);
int SSL_accept(SSL *ssl);
int SSL_connect(SSL *ssl);
void SSL_free(SSL *ssl);
SSL *SSL_new(SSL_CTX *context);
int SSL_read(SSL *ssl, void *data, int length);
void SSL_set_bio(SSL *ssl, BIO *in, BIO *out);
int SSL_write(SSL *ssl, const void *data, int length);
void X509_free(X509 *certificate);
void *X509_get_notAfter(X509 *certificate);
void *X509_get_notBefore(X509 *certificate);
void *X509_gmtime_adj(void *time, long seconds);
X509 *X509_new(void);
int X509_set_pubkey(X509 *certificate, EVP_PKEY *pkey);
int X509_sign(X509 *certificate, EVP_PKEY *pkey, const EVP_MD *digest);
unsigned long awslc_api_version_num(void);

#define PRIME256V1 415

static SSL_CTX *with_certificate(void) {
    SSL_CTX *context = SSL_CTX_new(TLS_method());
    EC_KEY *key = EC_KEY_new_by_curve_name(PRIME256V1);
    EVP_PKEY *pkey = EVP_PKEY_new();
    X509 *certificate = X509_new();
    EC_KEY_generate_key(key);
    EVP_PKEY_assign_EC_KEY(pkey, key);
    X509_gmtime_adj(X509_get_notBefore(certificate), 0);
    X509_gmtime_adj(X509_get_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, pkey);
    X509_sign(certificate, pkey, EVP_sha256());
    SSL_CTX_use_certificate(context, certificate);
    SSL_CTX_use_PrivateKey(context, pkey);
    X509_free(certificate);
    EVP_PKEY_free(pkey);
    return context;
}

static SSL *connection(SSL_CTX *context, BIO *bio) {
    SSL *ssl = SSL_new(context);
    SSL_set_bio(ssl, bio, bio);
    return ssl;
}

/* 4 if AWS-LC has done a handshake with itself, and four bytes went through the connection. */
int own_handshake(void) {
    char data[4];
    BIO *bios[2];
    if (awslc_api_version_num() == 0 || !BIO_new_bio_pair(&bios[0], 0, &bios[1], 0)) return -1;
    SSL_CTX *servers = with_certificate(), *clients = SSL_CTX_new(TLS_method());
    SSL *server = connection(servers, bios[0]), *client = connection(clients, bios[1]);
    int accepted = 0, connected = 0;
    for (int turn = 0; turn < 20 && (accepted != 1 || connected != 1); turn++) {
        if (connected != 1) connected = SSL_connect(client);
        if (accepted != 1) accepted = SSL_accept(server);
    }
    int passed = connected == 1 && SSL_write(client, "ping", 4) == 4 ? SSL_read(server, data, 4) : -2;
    SSL_free(client);
    SSL_free(server);
    SSL_CTX_free(clients);
    SSL_CTX_free(servers);
    return passed;
}
