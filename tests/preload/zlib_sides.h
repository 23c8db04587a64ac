/*
 * Two zlibs side by side: the one that the program is linked with, which a
 * preloaded library takes the place of, and the original in a namespace of
 * its own, which nothing reaches.
 */
#ifndef HASTEN_TEST_ZLIB_SIDES_H
#define HASTEN_TEST_ZLIB_SIDES_H

#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
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

/*
 * A function of a library, from its table of symbols. Not by dlsym: whoever asks that for one of zlib's functions may call
 * it around the preloaded library, which then leaves all streams alone.
 */
static void *function_of(const struct link_map *library, const char *name) {
    const ElfW(Sym) *symbols = NULL;
    const char *names = NULL;
    for (const ElfW(Dyn) *entry = library->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_SYMTAB) symbols = (const void *)entry->d_un.d_ptr;
        if (entry->d_tag == DT_STRTAB) names = (const void *)entry->d_un.d_ptr;
    }
    /* Nothing says how long the table is, but linkers put the names behind it. */
    for (const ElfW(Sym) *symbol = symbols; (const char *)symbol < names; symbol++)
        if (symbol->st_shndx != SHN_UNDEF && strcmp(names + symbol->st_name, name) == 0)
            return (void *)(library->l_addr + symbol->st_value);
    die("%s has no %s", library->l_name, name);
}

/* What is compared must not be the original with itself. A state of zlib's begins with the address of its stream. */
static void check_that_streams_are_served(void) {
    const char *preloaded = getenv("LD_PRELOAD");
    if (preloaded == NULL || strstr(preloaded, "libhasten_gzip") == NULL) return;
    z_stream packing = {0}, unpacking = {0};
    if (linked.deflateInit_(&packing, 6, ZLIB_VERSION, sizeof packing) != Z_OK) die("deflateInit");
    if (linked.inflateInit2_(&unpacking, 15, ZLIB_VERSION, sizeof unpacking) != Z_OK) die("inflateInit2");
    if (*(z_streamp *)packing.state == &packing || *(z_streamp *)unpacking.state == &unpacking)
        die("the preloaded library leaves the program's streams to the original");
    linked.deflateEnd(&packing);
    linked.inflateEnd(&unpacking);
}

/* Tools that do not know of namespaces see one zlib on both sides: then only what is decoded is checked. */
static void load_original(bool in_its_own_namespace) {
    if (in_its_own_namespace) {
        const struct link_map *library = dlmopen(LM_ID_NEWLM, "libz.so.1", RTLD_NOW);
        if (library == NULL) die("%s", dlerror());
        original.name = "original";
#define X(function) original.function = (__typeof__(&function))function_of(library, #function);
        ZLIB_FUNCTIONS(X)
#undef X
    } else {
        original = linked;
    }
    check_that_streams_are_served();
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
