/* A provider of another name that does what OpenSSL's own does, as a FIPS module would take its place: key objects and
 * algorithms are its own, and every fetch ends here.
 *
 * It holds OpenSSL's default provider in a library context of its own and hands out that provider's functions. */

#include <openssl/core_dispatch.h>
#include <openssl/crypto.h>
#include <openssl/provider.h>
#include <stdlib.h>

static OSSL_LIB_CTX *within;
static OSSL_PROVIDER *original;
static OSSL_ALGORITHM *renamed[OSSL_OP_ENCODER];

/* The same functions, with another property. */
static const OSSL_ALGORITHM *query(void *context, int operation, int *no_cache)
{
    (void)context;
    /* Files are the base provider's business, as with FIPS. */
    if (operation < 0 || operation >= OSSL_OP_ENCODER)
        return NULL;
    const OSSL_ALGORITHM *theirs = OSSL_PROVIDER_query_operation(original, operation, no_cache);
    *no_cache = 0;
    if (theirs == NULL || renamed[operation] != NULL)
        return renamed[operation];
    size_t count = 0;
    while (theirs[count].algorithm_names != NULL)
        count++;
    OSSL_ALGORITHM *ours = calloc(count + 1, sizeof *ours);
    if (ours == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        ours[i] = theirs[i];
        ours[i].property_definition = "provider=standin,fips=yes";
    }
    return renamed[operation] = ours;
}

static int capabilities(void *context, const char *name, OSSL_CALLBACK *callback, void *argument)
{
    (void)context;
    return OSSL_PROVIDER_get_capabilities(original, name, callback, argument);
}

static void teardown(void *context)
{
    (void)context;
    OSSL_PROVIDER_unload(original);
    OSSL_LIB_CTX_free(within);
    for (int i = 0; i < OSSL_OP_ENCODER; i++) {
        free(renamed[i]);
        renamed[i] = NULL;
    }
}

static const OSSL_DISPATCH functions[] = {
    {OSSL_FUNC_PROVIDER_QUERY_OPERATION, (void (*)(void))query},
    {OSSL_FUNC_PROVIDER_GET_CAPABILITIES, (void (*)(void))capabilities},
    {OSSL_FUNC_PROVIDER_TEARDOWN, (void (*)(void))teardown},
    {0, NULL},
};

int OSSL_provider_init(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *in, const OSSL_DISPATCH **out, void **context)
{
    (void)handle;
    (void)in;
    within = OSSL_LIB_CTX_new();
    original = OSSL_PROVIDER_load(within, "default");
    if (original == NULL)
        return 0;
    *context = OSSL_PROVIDER_get0_provider_ctx(original);
    *out = functions;
    return 1;
}
