/* Keys and algorithms that come, go, and change while handshakes use them. */
#include "common.h"
#include <dlfcn.h>
#include <openssl/kdf.h>
#include <openssl/provider.h>
#include <openssl/rand.h>

static SSL_CTX *client;

static long resident_kib(void) {
    long pages = 0, total = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%ld %ld", &total, &pages) == 2);
    fclose(file);
    return pages * 4;
}

/* A server is given new certificates all its life; addresses of old keys come back for keys of another kind. */
static void many(int rounds) {
    static const char *kinds[] = {"p-256", "p-384", "ed25519", "p-521", "p-256"};
    int good = 0;
    long before = 0;
    for (int i = 0; i < rounds; i++) {
        SSL_CTX *server = server_context(kinds[i % 5]);
        if (i == rounds / 2) before = resident_kib();
        good += talk_in_memory(server, client);
        good += talk_in_memory(server, client);
        SSL_CTX_free(server);
    }
    printf("handshakes: %d, grows: %d\n", good, resident_kib() - before > 1024);
}

/* As many at once as a host with many names has. */
static void many_at_once(int count) {
    SSL_CTX **servers = calloc(count, sizeof(*servers));
    int good = 0;
    for (int i = 0; i < count; i++) servers[i] = server_context(i % 2 == 0 ? "p-256" : "p-384");
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < count; i += 3) good += talk_in_memory(servers[i], client);
    }
    for (int i = 0; i < count; i++) SSL_CTX_free(servers[(i * 7) % count]);
    printf("handshakes: %d\n", good);
}

static SSL_CTX *server_with(EVP_PKEY *key) {
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    X509 *certificate = self_signed(key);
    CHECK(SSL_CTX_use_certificate(context, certificate) == 1 && SSL_CTX_use_PrivateKey(context, key) == 1);
    X509_free(certificate);
    return context;
}

/* A copy of a key that was used is a key of its own. */
static void copied(const char *kind) {
    for (int first_goes = 0; first_goes < 2; first_goes++) {
        EVP_PKEY *key = new_key(kind);
        SSL_CTX *server = server_with(key);
        CHECK(talk_in_memory(server, client));
        EVP_PKEY *copy = EVP_PKEY_dup(key);
        SSL_CTX *other = server_with(copy);
        EVP_PKEY_free(key);
        EVP_PKEY_free(copy);
        if (first_goes) SSL_CTX_free(server);
        int good = talk_in_memory(first_goes ? other : server, client);
        SSL_CTX_free(other);
        if (!first_goes) good += talk_in_memory(server, client), SSL_CTX_free(server);
        printf("%s: %d\n", kind, good);
    }
}

static enum { TAKES, KEEPS, COPIES } what_with_it;
static EVP_PKEY *kept[8];
static int kept_count, taken;

/* A server that looks at its half of the key exchange in the middle of the handshake. */
static void inspect(const SSL *ssl, int kind, int value) {
    EVP_PKEY *key = NULL;
    (void)value;
    if ((kind & SSL_CB_LOOP) == 0 || !SSL_get_tmp_key((SSL *)ssl, &key)) return;
    unsigned char *public = NULL;
    taken += EVP_PKEY_get1_encoded_public_key(key, &public) > 0;
    OPENSSL_free(public);
    if (what_with_it == COPIES && kept_count < 8) kept[kept_count++] = EVP_PKEY_dup(key);
    if (what_with_it == KEEPS && kept_count < 8) kept[kept_count++] = key;
    else EVP_PKEY_free(key);
}

static void temporary(int version, const char *group) {
    SSL_CTX *server = server_context("p-256"), *visitor = client_context(version);
    int good = 0, readable = 0;
    CHECK(SSL_CTX_set1_groups_list(visitor, group) == 1);
    SSL_CTX_set_info_callback(server, inspect);
    taken = kept_count = 0;
    for (int i = 0; i < 4; i++) good += talk_in_memory(server, visitor);
    for (int i = 0; i < kept_count; i++) {
        unsigned char *public = NULL;
        readable += EVP_PKEY_get1_encoded_public_key(kept[i], &public) > 0;
        OPENSSL_free(public);
        EVP_PKEY_free(kept[i]);
    }
    for (int i = 0; i < 4; i++) good += talk_in_memory(server, visitor);
    printf("%s: %d, looked at it: %d, kept: %d of %d\n", group, good, taken > 0, readable, kept_count);
    SSL_CTX_free(server);
    SSL_CTX_free(visitor);
}

static void temporary_keys(void) {
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        temporary(version, "X25519:P-256");
        temporary(version, "P-256");
        temporary(version, "P-384:P-256");
        temporary(version, "P-521:P-256");
    }
}

typedef unsigned char *MacFunction(OSSL_LIB_CTX *, const char *, const char *, const char *, const OSSL_PARAM *,
                                   const void *, size_t, const unsigned char *, size_t, unsigned char *, size_t,
                                   size_t *);
typedef int DeriveFunction(EVP_KDF_CTX *, unsigned char *, size_t, const OSSL_PARAM *);
static MacFunction *original_mac;
static DeriveFunction *original_derive;
static int compared, different;

static void compare_mac(const char *name, const char *digest, size_t key_length, size_t length, size_t room) {
    unsigned char key[300], data[1000], mine[64] = {0}, theirs[64] = {0};
    size_t my_length = 0, their_length = 0;
    RAND_bytes(key, sizeof(key));
    RAND_bytes(data, sizeof(data));
    unsigned char *a = EVP_Q_mac(NULL, name, NULL, digest, NULL, key, key_length, data, length, mine, room, &my_length);
    unsigned char *b = original_mac(NULL, name, NULL, digest, NULL, key, key_length, data, length, theirs, room,
                                    &their_length);
    ERR_clear_error();
    compared++;
    different += (a == NULL) != (b == NULL) || my_length != their_length || memcmp(mine, theirs, 64) != 0;
}

static void compare_derive(EVP_KDF *kdf, const OSSL_PARAM *before, const OSSL_PARAM *now, size_t length) {
    unsigned char mine[128] = {0}, theirs[128] = {0};
    EVP_KDF_CTX *a = EVP_KDF_CTX_new(kdf), *b = EVP_KDF_CTX_new(kdf);
    if (before != NULL) CHECK(EVP_KDF_CTX_set_params(a, before) == EVP_KDF_CTX_set_params(b, before));
    int my_result = EVP_KDF_derive(a, mine, length, now), their_result = original_derive(b, theirs, length, now);
    /* Once more, with what the context remembers. */
    if (my_result > 0) my_result = EVP_KDF_derive(a, mine + 64, length, before != NULL ? now : NULL);
    if (their_result > 0) their_result = original_derive(b, theirs + 64, length, before != NULL ? now : NULL);
    EVP_KDF_CTX_free(a);
    EVP_KDF_CTX_free(b);
    ERR_clear_error();
    compared++;
    different += my_result != their_result || memcmp(mine, theirs, 128) != 0;
}

/* What a server can do with its half of the exchange once the handshake is over. */
static void look_at_half(SSL *server) {
    EVP_PKEY *own = NULL, *peer = NULL;
    unsigned char secret[64], private[64], *encoded = NULL;
    size_t secret_length = sizeof(secret), private_length = sizeof(private);
    CHECK(SSL_get_tmp_key(server, &own) == 1 && SSL_get_peer_tmp_key(server, &peer) == 1);
    EVP_PKEY_CTX *check = EVP_PKEY_CTX_new(own, NULL), *derive = EVP_PKEY_CTX_new(own, NULL);
    bool raw = EVP_PKEY_get_base_id(own) == EVP_PKEY_X25519;
    printf("%s: encoded %d, pair %d, raw %d, derived %d\n", OBJ_nid2sn(EVP_PKEY_get_base_id(own)),
           i2d_PrivateKey(own, &encoded) > 0, EVP_PKEY_pairwise_check(check),
           !raw || EVP_PKEY_get_raw_private_key(own, private, &private_length),
           EVP_PKEY_derive_init(derive) > 0 && EVP_PKEY_derive_set_peer(derive, peer) > 0 &&
               EVP_PKEY_derive(derive, secret, &secret_length) > 0);
    OPENSSL_free(encoded);
    EVP_PKEY_CTX_free(check);
    EVP_PKEY_CTX_free(derive);
    EVP_PKEY_free(own);
    EVP_PKEY_free(peer);
}

static void halves(void) {
    static const char *groups[] = {"X25519", "P-256", "P-384"};
    SSL_CTX *server = server_context("p-256"), *visitor = client_context(TLS1_3_VERSION);
    for (int i = 0; i < 12; i++) {
        CHECK(SSL_CTX_set1_groups_list(visitor, groups[i % 3]) == 1);
        talk_in_memory_and(server, visitor, look_at_half);
    }
    SSL_CTX_free(visitor);
    SSL_CTX_free(server);
}

/* A server that derives keys of its own in the middle of a handshake. */
static int compute(SSL *ssl, void *argument) {
    static char *digests[] = {"SHA256", "SHA2-256", "SHA-384", "SHA384", "SHA512", "SHA1", "MD5", "SHA3-256", "no"};
    (void)ssl, (void)argument;
    for (size_t i = 0; i < sizeof(digests) / sizeof(*digests); i++) {
        static const size_t lengths[] = {0, 1, 31, 32, 63, 64, 65, 127, 128, 129, 300};
        for (size_t j = 0; j < 11; j++) {
            compare_mac("HMAC", digests[i], lengths[j], lengths[10 - j] * 3, 64);
            compare_mac("HMAC", digests[i], lengths[j], lengths[j], lengths[j] < 64 ? lengths[j] : 64);
        }
        OSSL_PARAM secret[] = {OSSL_PARAM_construct_utf8_string("digest", digests[i], 0),
                               OSSL_PARAM_construct_octet_string("secret", "a secret", 8), OSSL_PARAM_END};
        OSSL_PARAM seed[] = {OSSL_PARAM_construct_octet_string("seed", "label", 5),
                             OSSL_PARAM_construct_octet_string("seed", "random", 6), OSSL_PARAM_END};
        OSSL_PARAM all[] = {secret[0], secret[1], seed[0], seed[1], OSSL_PARAM_END};
        EVP_KDF *prf = EVP_KDF_fetch(NULL, "TLS1-PRF", NULL);
        compare_derive(prf, NULL, all, 48);
        compare_derive(prf, secret, seed, 48);
        compare_derive(prf, seed, all, 48);
        compare_derive(prf, NULL, seed, 48);
        EVP_KDF_free(prf);
        int expand = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
        OSSL_PARAM tls13[] = {OSSL_PARAM_construct_int("mode", &expand), secret[0],
                              OSSL_PARAM_construct_octet_string("key", "0123456789abcdef0123456789abcdef", 32),
                              OSSL_PARAM_construct_octet_string("prefix", "tls13 ", 6),
                              OSSL_PARAM_construct_octet_string("label", "finished", 8),
                              OSSL_PARAM_construct_octet_string("data", "", 0), OSSL_PARAM_END};
        OSSL_PARAM half[] = {tls13[0], tls13[1], tls13[2], OSSL_PARAM_END};
        EVP_KDF *hkdf = EVP_KDF_fetch(NULL, "TLS13-KDF", NULL);
        compare_derive(hkdf, NULL, tls13, 32);
        compare_derive(hkdf, half, tls13 + 3, 32);
        compare_derive(hkdf, NULL, tls13 + 3, 32);
        EVP_KDF_free(hkdf);
    }
    return 1;
}

static void computed(void) {
    void *library = dlopen("libcrypto.so.3", RTLD_NOW);
    CHECK(library != NULL);
    original_mac = (MacFunction *)dlsym(library, "EVP_Q_mac");
    original_derive = (DeriveFunction *)dlsym(library, "EVP_KDF_derive");
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        SSL_CTX *server = server_context("p-256"), *visitor = client_context(version);
        SSL_CTX_set_cert_cb(server, compute, NULL);
        for (int i = 0; i < 2; i++) CHECK(talk_in_memory(server, visitor));
        SSL_CTX_free(visitor);
        SSL_CTX_free(server);
    }
    printf("compared %d, different %d\n", compared, different);
}

static int handshakes(SSL_CTX *server, int count) {
    int good = 0;
    for (int i = 0; i < count; i++) good += talk_in_memory(server, client);
    return good;
}

/* OpenSSL is reconfigured while the server runs. */
static void reconfigured(const char *how) {
    SSL_CTX *server = server_context("rsa-2048");
    OSSL_PROVIDER *provider = NULL;
    printf("before: %d\n", handshakes(server, 4));
    if (is(how, "provider-load")) provider = OSSL_PROVIDER_load(NULL, "legacy");
    if (is(how, "provider-try-load")) provider = OSSL_PROVIDER_try_load(NULL, "legacy", 1);
    if (is(how, "properties")) printf("set: %d\n", EVP_set_default_properties(NULL, "?provider=legacy"));
    if (is(how, "fips")) printf("set: %d\n", EVP_default_properties_enable_fips(NULL, 1));
    if (strncmp(how, "provider", 8) == 0) printf("loaded: %d\n", provider != NULL);
    if (is(how, "fips")) {
        /* No FIPS provider is loaded: nothing can be had. */
        SSL *ssl = SSL_new(server);
        printf("an SSL: %d\n", ssl != NULL);
        SSL_free(ssl);
        ERR_clear_error();
        printf("unset: %d\n", EVP_default_properties_enable_fips(NULL, 0));
    }
    printf("after: %d\n", handshakes(server, 4));
    if (provider != NULL) printf("unloaded: %d\n", OSSL_PROVIDER_unload(provider));
    printf("at the end: %d\n", handshakes(server, 4));
}

/* A server that has a library context of its own. */
static void own_context(void) {
    OSSL_LIB_CTX *library = OSSL_LIB_CTX_new();
    SSL_CTX *server = SSL_CTX_new_ex(library, NULL, TLS_server_method());
    use_new_key(server, "rsa-2048");
    printf("own context: %d\n", handshakes(server, 4));
    SSL_CTX_free(server);
    server = SSL_CTX_new_ex(NULL, "?fips=yes", TLS_server_method());
    use_new_key(server, "rsa-2048");
    printf("own properties: %d\n", handshakes(server, 4));
    SSL_CTX_free(server);
    OSSL_LIB_CTX_free(library);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    signal(SIGPIPE, SIG_IGN);
    alarm(100);
    client = client_context(0);
    if (is(what, "many")) many(600);
    else if (is(what, "many-at-once")) many_at_once(500);
    else if (is(what, "copied")) copied("p-256"), copied("rsa-2048"), copied("ed25519");
    else if (is(what, "temporary")) what_with_it = TAKES, temporary_keys();
    else if (is(what, "temporary-kept")) what_with_it = KEEPS, temporary_keys();
    else if (is(what, "temporary-copied")) what_with_it = COPIES, temporary_keys();
    else if (is(what, "computed")) computed();
    else if (is(what, "halves")) halves();
    else if (is(what, "own-context")) own_context();
    else reconfigured(what);
    printf("errors left %d\n", ERR_peek_error() != 0);
    return finish();
}
