/*
 * Two zlibs side by side: the one that the program is linked with, which a
 * preloaded library takes the place of, and the original in a namespace of
 * its own, which nothing reaches.
 */
#ifndef HASTEN_TEST_ZLIB_SIDES_H
#define HASTEN_TEST_ZLIB_SIDES_H

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define ZLIB_FUNCTIONS(X)                                                                                      \
    X(deflateInit_) X(deflateInit2_) X(deflate) X(deflateEnd) X(deflateReset) X(deflateResetKeep)              \
    X(deflateSetDictionary) X(deflateGetDictionary) X(deflateCopy) X(deflateParams) X(deflateTune)             \
    X(deflateBound) X(deflatePending) X(deflatePrime) X(deflateSetHeader) X(compress2) X(compressBound)        \
    X(inflateInit2_) X(inflate) X(inflateEnd) X(inflateSetDictionary) X(inflatePrime) X(inflateCopy)           \
    X(inflateReset2)

/* deflateResetKeep is exported, but not declared for everybody. */
extern int deflateResetKeep(z_streamp);

struct zlib {
    const char *name;
#define X(function) __typeof__(&function) function;
    ZLIB_FUNCTIONS(X)
#undef X
};

/* What the program under test calls. */
static struct zlib linked = {
    .name = "linked",
#define X(function) .function = function,
    ZLIB_FUNCTIONS(X)
#undef X
};

/* What everything is compared with; all results are checked with its inflate. */
static struct zlib original;

static void die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
static void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(3);
}

/* Tools that do not know of namespaces see one zlib on both sides: then only what is decoded is checked. */
static void load_original(bool in_its_own_namespace) {
    if (!in_its_own_namespace) {
        original = linked;
        return;
    }
    void *library = dlmopen(LM_ID_NEWLM, "libz.so.1", RTLD_NOW);
    if (library == NULL) die("%s", dlerror());
    original.name = "original";
#define X(function)                                                                                            \
    if ((original.function = (__typeof__(&function))dlsym(library, #function)) == NULL) die("%s", dlerror());
    ZLIB_FUNCTIONS(X)
#undef X
}

/*
 * An allocator that remembers what it was asked for, fails when told to, hands
 * out memory that is not zero, and looks whether anybody wrote behind it.
 */
enum { REQUESTS = 256, CANARY = 32, FILL = 0xa5 };

struct heap {
    unsigned requests, fail_at; /* the request that fails, counted from 1; none if 0 */
    unsigned items[REQUESTS], sizes[REQUESTS];
    long live;
};

struct block {
    size_t length;
    struct heap *heap;
    unsigned char bytes[];
};

static inline void *heap_alloc(void *opaque, unsigned items, unsigned size) {
    struct heap *heap = opaque;
    unsigned request = heap->requests++;
    size_t length = (size_t)items * size;
    if (request < REQUESTS) heap->items[request] = items, heap->sizes[request] = size;
    if (heap->requests == heap->fail_at) return NULL;
    struct block *block = malloc(sizeof *block + length + CANARY);
    if (block == NULL) die("out of memory");
    block->length = length;
    block->heap = heap;
    memset(block->bytes, FILL, length + CANARY);
    heap->live++;
    return block->bytes;
}

static inline void heap_free(void *opaque, void *address) {
    struct block *block = (struct block *)((unsigned char *)address - sizeof(struct block));
    if (block->heap != opaque) die("memory given back to a heap that it is not from");
    for (size_t i = 0; i < CANARY; i++)
        if (block->bytes[block->length + i] != FILL) die("written %zu bytes behind %zu", i + 1, block->length);
    block->heap->live--;
    memset(block, FILL, sizeof *block + block->length);
    free(block);
}

/* Bytes that grow. */
struct bytes {
    unsigned char *at;
    size_t length, capacity;
};

static unsigned char *room_in(struct bytes *bytes, size_t length) {
    if (bytes->length + length > bytes->capacity) {
        bytes->capacity = (bytes->length + length) * 2;
        bytes->at = realloc(bytes->at, bytes->capacity);
        if (bytes->at == NULL) die("out of memory");
    }
    return bytes->at + bytes->length;
}

static inline void append(struct bytes *bytes, const void *from, size_t length) {
    if (length == 0) return;
    memcpy(room_in(bytes, length), from, length);
    bytes->length += length;
}

/* Decodes what a side has written, as it comes. */
struct decoder {
    z_stream stream;
    bool open, ended;
    size_t taken;         /* of the side's output */
    struct bytes decoded; /* all of it, to be compared with what was compressed */
};

#endif
