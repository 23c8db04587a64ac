/* libqat.so.4 over OpenSSL: one instance with a ring of 64 requests. Results are computed when the instance is polled. */
#include "control.h"

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct flat {
    uint32_t length;
    uint8_t *data;
};

struct private_key {
    uint32_t version, representation;
    struct flat modulus, exponent, p, q, dp, dq, qinv;
};

struct rsa_data {
    struct private_key *key;
    struct flat input;
};

struct multiply_data {
    struct flat scalar, x, y, a, b, prime, cofactor;
    uint32_t field;
};

struct montgomery_data {
    uint32_t curve, is_base;
    struct flat scalar, x, y;
};

_Static_assert(sizeof(struct flat) == 16, "CpaFlatBuffer");
_Static_assert(sizeof(struct private_key) == 120, "CpaCyRsaPrivateKey");
_Static_assert(sizeof(struct rsa_data) == 24, "CpaCyRsaDecryptOpData");
_Static_assert(sizeof(struct multiply_data) == 120, "CpaCyEcPointMultiplyOpData");
_Static_assert(sizeof(struct montgomery_data) == 56, "CpaCyEcMontEdwdsPointMultiplyOpData");

enum { SUCCESS = 0, FAIL = -1, RETRY = -2, RESOURCE = -3, INVALID = -4, RESTARTING_NOW = -7 };
enum kind { PRIVATE, MULTIPLY, MONTGOMERY };
enum { RING = 64 };

typedef void (*rsa_done)(void *, int, void *, struct flat *);
typedef void (*multiply_done)(void *, int, void *, uint32_t, struct flat *, struct flat *);

struct request {
    enum kind kind;
    enum fault fault;
    void *callback, *tag;
    const void *data;
    struct flat *x, *y;
    uint64_t ends;
};

struct instance {
    struct request ring[RING];
    unsigned waiting;
    uint32_t generation;
    int is_started;
    pid_t process; /* The real one's rings are mapped by its process, and seen by its children. */
    struct instance *older;
};

/* One for each start of the library; the real one keeps rings of a stopped process to itself, too. */
static struct instance *current;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

SIMULATED

API int icp_sal_userStart(const char *section)
{
    struct block *block = control(QAT);
    while (block->fault == HANG_INIT)
        sleep_milliseconds(5);
    if (section == NULL || block->fault == INIT_FAILURE || block->fault == GONE) {
        count_fault(block);
        return block->fault == GONE ? RESTARTING_NOW : FAIL;
    }
    pthread_mutex_lock(&lock);
    struct instance *older = current;
    current = calloc(1, sizeof *current);
    current->generation = block->generation;
    current->older = older;
    current->process = getpid();
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

API int icp_sal_userStop(void)
{
    return SUCCESS;
}

API int cpaCyGetNumInstances(uint16_t *count)
{
    struct block *block = control(QAT);
    *count = block->fault == NO_INSTANCE ? 0 : 1;
    if (*count == 0)
        count_fault(block);
    return SUCCESS;
}

API int cpaCyGetInstances(uint16_t count, void **instances)
{
    if (count != 1)
        return INVALID;
    pthread_mutex_lock(&lock);
    instances[0] = current;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

API int cpaCySetAddressTranslation(void *instance, uint64_t (*translation)(void *))
{
    return instance != NULL && translation(instance) != 0 ? SUCCESS : INVALID;
}

API int cpaCyStartInstance(struct instance *instance)
{
    look_for_trespass(control(QAT), instance->process);
    instance->is_started = 1;
    control(QAT)->opened++;
    return SUCCESS;
}

API int cpaCyStopInstance(struct instance *instance)
{
    look_for_trespass(control(QAT), instance->process);
    instance->is_started = 0;
    return SUCCESS;
}

static int submit(struct instance *instance, struct request request)
{
    struct block *block = control(QAT);
    look_for_trespass(control(QAT), instance->process);
    if (request.callback == NULL || !instance->is_started)
        return INVALID;
    block->operations++;
    if (instance->generation != block->generation)
        return RESTARTING_NOW;
    request.fault = block->fault;
    request.ends = now_milliseconds() + (request.fault == SLOW ? block->milliseconds : 0);
    switch (request.fault) {
    case QUEUE_FULL: count_fault(block); return RETRY;
    case GONE:
    case RESTARTING: count_fault(block); return RESTARTING_NOW;
    default: break;
    }
    if (instance->waiting == RING)
        return RETRY;
    instance->ring[instance->waiting++] = request;
    return SUCCESS;
}

API int cpaCyRsaDecrypt(struct instance *instance, rsa_done done, void *tag, const struct rsa_data *data, struct flat *out)
{
    if (data->key->version != 1 || data->key->representation != 2 || out->length < data->input.length)
        return INVALID;
    return submit(instance, (struct request) { .kind = PRIVATE, .callback = (void *)done, .tag = tag, .data = data, .x = out });
}

API int cpaCyEcPointMultiply(struct instance *instance, multiply_done done, void *tag, const struct multiply_data *data,
                             uint32_t *status, struct flat *x, struct flat *y)
{
    if (status == NULL || data->field != 1)
        return INVALID;
    return submit(instance, (struct request) { .kind = MULTIPLY, .callback = (void *)done, .tag = tag, .data = data, .x = x, .y = y });
}

API int cpaCyEcMontEdwdsPointMultiply(struct instance *instance, multiply_done done, void *tag,
                                      const struct montgomery_data *data, uint32_t *status, struct flat *x, struct flat *y)
{
    if (status == NULL || data->curve != 1 || x->length != 32)
        return INVALID;
    return submit(instance, (struct request) { .kind = MONTGOMERY, .callback = (void *)done, .tag = tag, .data = data, .x = x, .y = y });
}

static BIGNUM *number(BN_CTX *context, const struct flat *flat)
{
    return BN_bin2bn(flat->data, (int)flat->length, BN_CTX_get(context));
}

static int rsa(BN_CTX *context, const struct rsa_data *data, struct flat *out)
{
    const struct private_key *key = data->key;
    BIGNUM *p = number(context, &key->p), *q = number(context, &key->q), *c = number(context, &data->input);
    BIGNUM *m1 = BN_CTX_get(context), *m2 = BN_CTX_get(context), *h = BN_CTX_get(context);
    BN_mod_exp(m1, c, number(context, &key->dp), p, context);
    BN_mod_exp(m2, c, number(context, &key->dq), q, context);
    BN_mod_sub(h, m1, m2, p, context);
    BN_mod_mul(h, h, number(context, &key->qinv), p, context);
    BN_mul(h, h, q, context);
    BN_add(h, h, m2);
    return BN_bn2binpad(h, out->data, (int)out->length) > 0;
}

static int multiply(BN_CTX *context, const struct multiply_data *data, struct flat *x, struct flat *y)
{
    EC_GROUP *group = EC_GROUP_new_curve_GFp(number(context, &data->prime), number(context, &data->a),
                                             number(context, &data->b), context);
    EC_POINT *point = EC_POINT_new(group);
    BIGNUM *px = number(context, &data->x), *py = number(context, &data->y);
    int good = EC_POINT_set_affine_coordinates(group, point, px, py, context) == 1 &&
               EC_POINT_mul(group, point, NULL, point, number(context, &data->scalar), context) == 1 &&
               EC_POINT_get_affine_coordinates(group, point, px, py, context) == 1 &&
               BN_bn2binpad(px, x->data, (int)x->length) > 0 && BN_bn2binpad(py, y->data, (int)y->length) > 0;
    EC_POINT_free(point);
    EC_GROUP_free(group);
    return good;
}

static void reverse(uint8_t *to, const uint8_t *from)
{
    for (int i = 0; i < 32; i++)
        to[i] = from[31 - i];
}

static int montgomery(const struct montgomery_data *data, struct flat *x)
{
    uint8_t scalar[32], point[32], result[32];
    size_t length = 32;
    reverse(scalar, data->scalar.data);
    EVP_PKEY *own = EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, scalar, 32);
    int good;
    if (data->is_base) {
        good = EVP_PKEY_get_raw_public_key(own, result, &length) == 1;
    } else {
        reverse(point, data->x.data);
        EVP_PKEY *peer = EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, NULL, point, 32);
        EVP_PKEY_CTX *context = EVP_PKEY_CTX_new(own, NULL);
        good = EVP_PKEY_derive_init(context) == 1 && EVP_PKEY_derive_set_peer(context, peer) == 1 &&
               EVP_PKEY_derive(context, result, &length) == 1;
        EVP_PKEY_CTX_free(context);
        EVP_PKEY_free(peer);
    }
    EVP_PKEY_free(own);
    if (good)
        reverse(x->data, result);
    return good;
}

static void finish(struct block *block, struct request *request)
{
    BN_CTX *context = BN_CTX_new();
    int status = SUCCESS, good = 1;
    BN_CTX_start(context);
    if (request->fault == ABORT || request->fault == HANG) {
        count_fault(block);
        status = FAIL;
    } else if (request->kind == PRIVATE) {
        good = rsa(context, request->data, request->x);
    } else if (request->kind == MULTIPLY) {
        good = multiply(context, request->data, request->x, request->y);
    } else {
        good = montgomery(request->data, request->x);
    }
    if (request->fault == WRONG_BYTES || request->fault == PARTIAL)
        count_fault(block);
    if (request->fault == WRONG_BYTES)
        damage(request->x->data, request->x->length);
    /* The device says that there is no result, or leaves the second half of it out. */
    if (request->fault == PARTIAL) {
        good = 0;
        memset(request->x->data + request->x->length / 2, 0, request->x->length / 2);
    }
    BN_CTX_end(context);
    BN_CTX_free(context);
    if (request->kind == PRIVATE)
        ((rsa_done)request->callback)(request->tag, status, (void *)request->data, request->x);
    else
        ((multiply_done)request->callback)(request->tag, status, (void *)request->data, (uint32_t)good, request->x, request->y);
}

API int icp_sal_CyPollInstance(struct instance *instance, uint32_t quota)
{
    struct block *block = control(QAT);
    unsigned kept = 0, waiting = instance->waiting, ended = 0;
    struct request ring[RING];
    look_for_trespass(control(QAT), instance->process);
    if (instance->generation != block->generation)
        return RESTARTING_NOW;
    memcpy(ring, instance->ring, sizeof ring);
    for (unsigned i = 0; i < waiting; i++) {
        int hangs = ring[i].fault == HANG && block->fault == HANG;
        if (hangs || now_milliseconds() < ring[i].ends || (quota != 0 && ended == quota)) {
            instance->ring[kept++] = ring[i];
            continue;
        }
        finish(block, &ring[i]);
        ended++;
    }
    instance->waiting = kept;
    return ended > 0 ? SUCCESS : RETRY;
}
