/* What a process has little of, or counts: addresses, and random numbers. */
#include "serve.h"
#include <openssl/rand.h>
#include <sys/resource.h>

static uint64_t drawn;

static int draw(unsigned char *bytes, int length) {
    for (int i = 0; i < length; i++) bytes[i] = (unsigned char)(++drawn * 2654435761u >> 16);
    return 1;
}

static int status(void) { return 1; }

/* A generator whose numbers can be foretold, as simulations and tests have: who draws otherwise gets others. */
static void counts_random_numbers(void) {
    static const RAND_METHOD method = {.bytes = draw, .pseudorand = draw, .status = status};
    CHECK(RAND_set_rand_method(&method) == 1);
    for (int i = 0; i < 8; i++) serve_a_visitor(NULL);
    printf("drawn %llu\n", (unsigned long long)drawn);
}

/* After a few visits there is as much room for the program as there is without us, but for what the libraries take. */
static void has_few_addresses(void) {
    enum { MIB = 1 << 20, ROOM = 60 * MIB };
    for (int i = 0; i < 8; i++) serve_a_visitor(NULL);
    struct rlimit limit = {.rlim_cur = 100 * MIB, .rlim_max = 100 * MIB};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    void *room = malloc(ROOM);
    printf("room %d\n", room != NULL);
    free(room);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    open_server("p-256");
    if (is(what, "random")) counts_random_numbers();
    if (is(what, "addresses")) has_few_addresses();
    return finish();
}
