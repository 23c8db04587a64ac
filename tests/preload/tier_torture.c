// Every function that allocates, from several threads, with forks in between; the content of every object is checked when
// it is resized or freed, also by another thread than the one that made it. The last line of output is the end.
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// jemalloc's own functions; the program is linked with it.
void *mallocx(size_t size, int flags);
void *rallocx(void *object, size_t size, int flags);
size_t xallocx(void *object, size_t size, size_t extra, int flags);
size_t sallocx(const void *object, int flags);
size_t nallocx(size_t size, int flags);
void dallocx(void *object, int flags);
void sdallocx(void *object, size_t size, int flags);
int mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size);

enum { THREADS = 4, OBJECTS = 400, ZERO = 0x40, NO_CACHE = 1 << 8 };

static struct object {
    unsigned char *bytes;
    size_t size;
    unsigned char value;
    size_t alignment;
} objects[THREADS][OBJECTS];
static pthread_mutex_t locks[THREADS];
static int rounds;

static void fail(const char *what) {
    fprintf(stderr, "wrong: %s (errno %d)\n", what, errno);
    _exit(3);
}

static void check(const unsigned char *bytes, size_t size, unsigned char value, const char *what) {
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != value) fail(what);
}

static uint64_t next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static size_t random_size(uint64_t *state) {
    uint64_t choice = next(state) % 100;
    if (choice < 60) return 1 + next(state) % 200;
    if (choice < 85) return 1 + next(state) % 5000;
    if (choice < 98) return 1 + next(state) % 60000;
    return 1 + next(state) % 3000000;
}

static void make(struct object *object, uint64_t *state) {
    size_t size = random_size(state), alignment = 1;
    unsigned char *bytes = NULL;
    switch (next(state) % 9) {
    case 0: case 1: bytes = malloc(size); break;
    case 2:
        bytes = calloc(size, 1);
        if (bytes) check(bytes, size, 0, "calloc");
        break;
    case 3:
        alignment = (size_t)16 << next(state) % 9;
        if (posix_memalign((void **)&bytes, alignment, size)) fail("posix_memalign");
        break;
    case 4: alignment = 4096; bytes = aligned_alloc(alignment, size); break;
    case 5: alignment = (size_t)8 << next(state) % 10; bytes = memalign(alignment, size); break;
    case 6: alignment = 4096; bytes = valloc(size); break;
    case 7:
        bytes = mallocx(size, ZERO | 6);
        alignment = 64;
        if (bytes) check(bytes, size, 0, "mallocx");
        break;
    default: bytes = mallocx(size, next(state) % 2 ? NO_CACHE : 0);
    }
    if (!bytes) fail("no memory");
    if ((uintptr_t)bytes % alignment) fail("alignment");
    if (malloc_usable_size(bytes) < size || sallocx(bytes, 0) < size) fail("usable size");
    object->bytes = bytes;
    object->size = size;
    object->alignment = alignment;
    object->value = (unsigned char)next(state);
    memset(bytes, object->value, size);
}

static void resize(struct object *object, uint64_t *state) {
    size_t size = random_size(state), kept = size < object->size ? size : object->size;
    unsigned char *bytes;
    switch (next(state) % 4) {
    case 0: bytes = rallocx(object->bytes, size, 0); break;
    case 1: bytes = reallocarray(object->bytes, 1, size); break;
    case 2:
        size = xallocx(object->bytes, size, 0, 0);
        if (size < kept) fail("xallocx");
        bytes = object->bytes;
        break;
    default: bytes = realloc(object->bytes, size);
    }
    if (!bytes) fail("no memory to resize");
    check(bytes, kept, object->value, "content after a resize");
    memset(bytes, object->value, size);
    object->bytes = bytes;
    object->size = size;
    object->alignment = 1;
}

static void drop(struct object *object, uint64_t *state) {
    check(object->bytes, object->size, object->value, "content");
    switch (next(state) % 4) {
    case 0: dallocx(object->bytes, 0); break;
    case 1: sdallocx(object->bytes, object->size, object->alignment > 1 ? __builtin_ctzl(object->alignment) : 0); break;
    default:
        errno = 77;
        free(object->bytes);
        if (errno != 77) fail("errno after free");
    }
    object->bytes = NULL;
}

// A child has what its parent had at that moment, and can go on with it.
static void fork_and_check(int thread, uint64_t *state) {
    pid_t child = fork();
    if (child < 0) fail("fork");
    if (child == 0) {
        // Only this thread's objects are at rest.
        for (int i = 0; i < OBJECTS; i++) {
            struct object *object = &objects[thread][i];
            if (object->bytes) drop(object, state);
            make(object, state);
        }
        for (int i = 0; i < OBJECTS; i++) drop(&objects[thread][i], state);
        _exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status) fail("in the child");
}

static void *run(void *argument) {
    int own = (int)(intptr_t)argument % THREADS;
    uint64_t state = 88172645463325252ull + (uint64_t)(intptr_t)argument * 7919;
    for (int round = 0; round < rounds; round++) {
        int whose = next(&state) % 4 ? own : (int)(next(&state) % THREADS);
        pthread_mutex_lock(&locks[whose]);
        struct object *object = &objects[whose][next(&state) % OBJECTS];
        if (!object->bytes) make(object, &state);
        else if (next(&state) % 3) drop(object, &state);
        else resize(object, &state);
        if (round % (rounds / 3 + 1) == rounds / 4) fork_and_check(whose, &state);
        pthread_mutex_unlock(&locks[whose]);
    }
    return NULL;
}

static void edges(void) {
    void *object = malloc(0), *other;
    if (!object) fail("malloc(0)");
    free(object);
    free(NULL);
    object = realloc(NULL, 100000);
    if (!object) fail("realloc of nothing");
    object = realloc(object, 10);
    if (!object) fail("realloc");
    free(object);
    volatile size_t most = SIZE_MAX;
    errno = 0;
    if (calloc(most / 2, 3) || errno != ENOMEM) fail("calloc of too much");
    if (malloc(most / 4)) fail("malloc of too much");
    if (posix_memalign(&other, 3, 100000) != EINVAL) fail("an alignment of 3");
    if (nallocx(100000, 0) < 100000) fail("nallocx");
    object = malloc(100000);
    memset(object, 5, 100000);
    if (realloc(object, most / 4)) fail("realloc to too much");
    check(object, 100000, 5, "an object that could not be resized");
    free(object);
    size_t allocated, size = sizeof allocated;
    uint64_t epoch = 1;
    if (mallctl("epoch", NULL, NULL, &epoch, sizeof epoch)) fail("epoch");
    if (mallctl("stats.allocated", &allocated, &size, NULL, 0) || !allocated) fail("statistics");
    malloc_trim(0);
}

int main(int count, char **arguments) {
    rounds = count > 1 ? atoi(arguments[1]) : 20000;
    edges();
    for (int i = 0; i < THREADS; i++) pthread_mutex_init(&locks[i], NULL);
    // Twice, so that threads end, and others continue with their objects.
    for (int generation = 0; generation < 2; generation++) {
        pthread_t threads[THREADS];
        for (intptr_t i = 0; i < THREADS; i++)
            if (pthread_create(&threads[i], NULL, run, (void *)(i + generation * THREADS))) fail("thread");
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    }
    uint64_t state = 1;
    size_t bytes = 0;
    for (int i = 0; i < THREADS; i++)
        for (int j = 0; j < OBJECTS; j++)
            if (objects[i][j].bytes) bytes += objects[i][j].size, drop(&objects[i][j], &state);
    edges();
    puts(bytes ? "all as it was" : "nothing was there");
    puts("end");
    fflush(stdout);
    return getchar() == EOF ? 0 : 1;
}
