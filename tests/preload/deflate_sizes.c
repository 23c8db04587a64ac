/*
 * How long deflate's output is, by the zlib that the program is linked with and by the original. A line of input is a
 * file, a level, a strategy, a window, a memory level, how much is handed over at a time, and after how many bytes there is
 * a flush; 0 for none. What comes out is unpacked by the original and compared.
 */
#include "zlib_sides.h"

enum { LARGEST = 1 << 20 };

struct call {
    int level, strategy, window, memory;
    size_t piece, flush;
};

static unsigned char plain[LARGEST], packed[2 * LARGEST], unpacked[LARGEST + 1];

static size_t pack(const struct zlib *zlib, const struct call *call, size_t length) {
    z_stream strm = {.next_out = packed, .avail_out = sizeof packed};
    size_t done = 0, since = 0;
    int result, flush;
    result = zlib->deflateInit2_(&strm, call->level, Z_DEFLATED, call->window, call->memory, call->strategy,
                                 ZLIB_VERSION, sizeof strm);
    if (result != Z_OK) die("%s: deflateInit2 says %d", zlib->name, result);
    do {
        size_t now = length - done < call->piece ? length - done : call->piece;
        if (call->flush > 0 && now > call->flush - since) now = call->flush - since;
        strm.next_in = plain + done, strm.avail_in = (uInt)now;
        done += now, since += now;
        flush = done == length ? Z_FINISH : since == call->flush ? Z_SYNC_FLUSH : Z_NO_FLUSH;
        if (flush == Z_SYNC_FLUSH) since = 0;
        result = zlib->deflate(&strm, flush);
        if (result != (flush == Z_FINISH ? Z_STREAM_END : Z_OK) || strm.avail_in > 0)
            die("%s: deflate says %d, %u bytes left", zlib->name, result, strm.avail_in);
    } while (flush != Z_FINISH);
    if (zlib->deflateEnd(&strm) != Z_OK) die("%s: deflateEnd fails", zlib->name);
    return strm.total_out;
}

static void check(const struct zlib *zlib, const struct call *call, size_t length, size_t packed_length) {
    z_stream strm = {.next_in = packed, .avail_in = (uInt)packed_length};
    strm.next_out = unpacked, strm.avail_out = sizeof unpacked;
    if (original.inflateInit2_(&strm, call->window, ZLIB_VERSION, sizeof strm) != Z_OK) die("no inflate");
    int result = original.inflate(&strm, Z_FINISH);
    if (result != Z_STREAM_END || strm.total_out != length || memcmp(unpacked, plain, length) != 0)
        die("%s has packed something else: inflate says %d after %lu bytes", zlib->name, result, strm.total_out);
    original.inflateEnd(&strm);
}

int main(void) {
    const struct zlib *const sides[] = {&linked, &original};
    char path[1024];
    struct call call;
    load_original(true);
    while (scanf("%1023s %d %d %d %d %zu %zu", path, &call.level, &call.strategy, &call.window, &call.memory,
                 &call.piece, &call.flush) == 7) {
        FILE *file = fopen(path, "rb");
        if (file == NULL) die("no %s", path);
        size_t length = fread(plain, 1, sizeof plain, file), lengths[2];
        fclose(file);
        for (int i = 0; i < 2; i++) {
            lengths[i] = pack(sides[i], &call, length);
            check(sides[i], &call, length, lengths[i]);
        }
        printf("%zu %zu\n", lengths[0], lengths[1]);
    }
    return 0;
}
