/*
 * What an inflate stream takes of the heap, on both implementations: the
 * calls of its allocator, and its bytes in any way. Each must be the
 * original's.
 */
#include "zlib_sides.h"

#include <malloc.h>

enum { STREAMS = 200, PLAIN = 100000, PIECE = 1000 };

static unsigned char plain[PLAIN], packed[PLAIN];

static size_t pack(int window_bits) {
    z_stream strm = {0};
    if (original.deflateInit2_(&strm, 6, Z_DEFLATED, window_bits, 8, 0, ZLIB_VERSION, sizeof strm) != Z_OK) die("deflateInit2");
    strm.next_in = plain, strm.avail_in = sizeof plain, strm.next_out = packed, strm.avail_out = sizeof packed;
    if (original.deflate(&strm, Z_FINISH) != Z_STREAM_END) die("deflate");
    original.deflateEnd(&strm);
    return strm.total_out;
}

/* Bytes for each of many streams that are in the middle of their data at the same time. */
static size_t cost(const struct zlib *z, int window_bits, size_t length) {
    static z_stream streams[STREAMS];
    static struct heap heaps[STREAMS];
    unsigned char out[PIECE];
    memset(heaps, 0, sizeof heaps);
    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    for (int i = 0; i < STREAMS; i++) {
        z_stream *strm = &streams[i];
        *strm = (z_stream){.zalloc = heap_alloc, .zfree = heap_free, .opaque = &heaps[i]};
        if (z->inflateInit2_(strm, window_bits, ZLIB_VERSION, sizeof *strm) != Z_OK) die("inflateInit2");
        strm->next_in = packed, strm->avail_in = (unsigned)length / 2;
        do {
            strm->next_out = out, strm->avail_out = PIECE;
            if (z->inflate(strm, Z_NO_FLUSH) < Z_OK && strm->avail_out == PIECE) break;
        } while (strm->avail_out == 0);
    }
    size_t during = mallinfo2().uordblks + mallinfo2().hblkhd;
    for (int i = 0; i < STREAMS; i++) {
        if (z->inflate(&streams[i], Z_NO_FLUSH) == Z_STREAM_ERROR) die("a stream was lost");
        z->inflateEnd(&streams[i]);
        if (heaps[i].live != 0) die("%ld blocks were not given back", heaps[i].live);
    }
    return (during - before) / STREAMS;
}

static struct heap heap;

static void calls(const char *when) {
    printf(" %s", when);
    for (unsigned i = 0; i < heap.requests && i < REQUESTS; i++) printf(" %u*%u", heap.items[i], heap.sizes[i]);
    heap = (struct heap){.live = heap.live};
}

/* Half of the data, a copy, as new with another window, all of it, and an allocator that fails. */
static void life(const struct zlib *z, int window_bits, size_t length) {
    static unsigned char out[PLAIN];
    heap = (struct heap){0};
    z_stream strm = {.zalloc = heap_alloc, .zfree = heap_free, .opaque = &heap}, copy;
    if (z->inflateInit2_(&strm, window_bits, ZLIB_VERSION, sizeof strm) != Z_OK) die("inflateInit2");
    calls("opened");
    strm.next_in = packed, strm.avail_in = (unsigned)length / 2, strm.next_out = out, strm.avail_out = sizeof out;
    z->inflate(&strm, Z_NO_FLUSH);
    calls("used");
    if (z->inflateCopy(&copy, &strm) != Z_OK) die("inflateCopy");
    calls("copied");
    z->inflateEnd(&copy);
    if (z->inflateReset2(&strm, window_bits) != Z_OK) die("inflateReset2");
    strm.next_in = packed, strm.avail_in = (unsigned)length, strm.next_out = out, strm.avail_out = sizeof out;
    if (z->inflate(&strm, Z_FINISH) != Z_STREAM_END) die("inflate");
    calls("again");
    z->inflateEnd(&strm);
    for (unsigned fail_at = 1; fail_at <= 2; fail_at++) {
        heap = (struct heap){.fail_at = fail_at};
        strm = (z_stream){.zalloc = heap_alloc, .zfree = heap_free, .opaque = &heap};
        int opened = z->inflateInit2_(&strm, window_bits, ZLIB_VERSION, sizeof strm);
        printf(" %d", opened);
        if (opened != Z_OK) continue;
        strm.next_in = packed, strm.avail_in = (unsigned)length / 2, strm.next_out = out, strm.avail_out = sizeof out;
        printf(" %d", z->inflate(&strm, Z_NO_FLUSH));
        z->inflateEnd(&strm);
    }
    if (heap.live != 0) die("%ld blocks were not given back", heap.live);
    printf("\n");
}

int main(void) {
    load_original(true);
    unsigned state = 1;
    for (size_t i = 0; i < sizeof plain; i++) state = state * 1103515245u + 12345u, plain[i] = (unsigned char)"etaoin shrdlu\n"[state >> 16 & 7];
    static const int windows[] = {9, 12, 15, 25, 31, -9, -15};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        size_t length = pack(windows[i]);
        /* The first streams of a process may fill pools that all later ones share. */
        cost(&linked, windows[i], length), cost(&original, windows[i], length);
        for (int is_ours = 0; is_ours < 2; is_ours++) {
            const struct zlib *z = is_ours ? &linked : &original;
            printf("%d %zu", windows[i], cost(z, windows[i], length));
            life(z, windows[i], length);
        }
    }
    return 0;
}
