/* The keys of loops.c: in files, so that all runs have the same, and read once for all schedules of a series. */
#ifndef HASTEN_TEST_LOOPS_KEYS_H
#define HASTEN_TEST_LOOPS_KEYS_H

#include "common.h"

enum kind { RSA_KEY, ECDSA_KEY, KINDS };

static const char *const kinds[KINDS][2] = {{"rsa", "rsa-2048"}, {"ecdsa", "p-256"}};
static EVP_PKEY *keys[KINDS];
static X509 *certificates[KINDS];

static FILE *open_key(const char *directory, enum kind kind, const char *mode) {
    char path[512];
    snprintf(path, sizeof(path), "%s/%s.pem", directory, kinds[kind][0]);
    FILE *file = fopen(path, mode);
    CHECK(file != NULL);
    return file;
}

static int make_keys(const char *directory) {
    for (enum kind kind = 0; kind < KINDS; kind++) {
        FILE *file = open_key(directory, kind, "w");
        EVP_PKEY *key = new_key(kinds[kind][1]);
        X509 *certificate = self_signed(key);
        CHECK(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) == 1);
        CHECK(PEM_write_X509(file, certificate) == 1 && fclose(file) == 0);
        X509_free(certificate);
        EVP_PKEY_free(key);
    }
    return finish();
}

static void load_keys(const char *directory) {
    for (enum kind kind = 0; kind < KINDS; kind++) {
        FILE *file = open_key(directory, kind, "r");
        keys[kind] = PEM_read_PrivateKey(file, NULL, NULL, NULL);
        certificates[kind] = PEM_read_X509(file, NULL, NULL, NULL);
        CHECK(keys[kind] != NULL && certificates[kind] != NULL && fclose(file) == 0);
    }
}

static void use_key(SSL_CTX *context, enum kind kind) {
    CHECK(SSL_CTX_use_PrivateKey(context, keys[kind]) == 1);
    CHECK(SSL_CTX_use_certificate(context, certificates[kind]) == 1);
}

#endif
