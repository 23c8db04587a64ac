/* libdeflate's compressor for parts of a stream: it starts behind a history and an unfinished byte, and may end without
 * ending the stream. scripts/libdeflate.sh puts the two macros into it. */
#include <stddef.h>

#include "lib_common.h"

struct deflate_output_bitstream;

static size_t
history_of(const struct deflate_output_bitstream *os);
static bool
is_last(const struct deflate_output_bitstream *os);

/* Where matches may come from: positions are remembered, but nothing is written for them. */
#define SKIP_HISTORY(kind, matchfinder)                                                                 \
        do {                                                                                            \
                const size_t history = history_of(os);                                                  \
                if (history > 0)                                                                        \
                        kind##_matchfinder_skip_bytes(matchfinder, &in_cur_base, in_next, in_end,        \
                                                      history, HASHES_##kind);                          \
                in_next += history;                                                                     \
        } while (0)
#define HASHES_hc next_hashes
#define HASHES_ht &next_hash

#define IS_LAST is_last(os)

#include "changed_compress.c"

/* libdeflate hands its bit stream to all that write; what they must know besides comes behind it. */
struct part {
        struct deflate_output_bitstream os;
        size_t history;
        bool last;
};

static size_t
history_of(const struct deflate_output_bitstream *os)
{
        return ((const struct part *) os)->history;
}

static bool
is_last(const struct deflate_output_bitstream *os)
{
        return ((const struct part *) os)->last;
}

/* A compressor for the fastest parsing alone, or with chains for all the others, in memory of the caller's. */
struct libdeflate_compressor *
hasten_libdeflate_new(bool chains, void *(*take)(size_t), void (*give_back)(void *))
{
        const struct libdeflate_options options = {
                .sizeof_options = sizeof(options),
                .malloc_func = take,
                .free_func = give_back,
        };

        return libdeflate_alloc_compressor_ex(chains ? 6 : 1, &options);
}

/* How hard to look, which is all that libdeflate's levels are, and how far back. The parsing is 0 for the fastest, which
 * only a compressor without chains can do, then greedy, lazy and lazy over two positions. The window is 32 KiB at most. */
void
hasten_libdeflate_tune(struct libdeflate_compressor *compressor, u32 parsing, u32 depth, u32 nice_length, u32 window)
{
        static void (*const parsers[])(struct libdeflate_compressor * restrict, const u8 *, size_t,
                                       struct deflate_output_bitstream *) = {
                deflate_compress_fastest,
                deflate_compress_greedy,
                deflate_compress_lazy,
                deflate_compress_lazy2,
        };

        compressor->impl = parsers[parsing];
        compressor->max_search_depth = depth;
        compressor->nice_match_length = nice_length;
        if (parsing == 0)
                compressor->p.f.ht_mf.window = window;
        else
                compressor->p.g.hc_mf.window = window;
}

void
hasten_libdeflate_free(struct libdeflate_compressor *compressor)
{
        libdeflate_free_compressor(compressor);
}

/* Compresses the `length` bytes behind `history` bytes at `in`. `value` and `count` are the bits of the unfinished byte,
 * before and after. Returns how many bytes were written. No part is shorter than a byte, for a block alone is longer: 0
 * says that there was not enough room. */
size_t
hasten_libdeflate_compress(struct libdeflate_compressor *compressor, const u8 *in, size_t history, size_t length,
                           bool last, u8 *out, size_t room, u8 *value, u8 *count)
{
        struct part part = { .history = history, .last = last };
        struct deflate_output_bitstream *os = &part.os;

        /* As libdeflate does for whole streams that are too short to gain anything. */
        if (history == 0 && *count == 0 && last && length <= compressor->max_passthrough_size)
                return deflate_compress_none(in, length, out, room);

        os->bitbuf = *value;
        os->bitcount = *count;
        os->next = out;
        os->end = out + room;
        os->overflow = false;
        compressor->impl(compressor, in, history + length, os);
        if (os->overflow || (last && os->bitcount > 0 && os->next == os->end))
                return 0;
        if (last && os->bitcount > 0) {
                *os->next++ = (u8) os->bitbuf;
                os->bitcount = 0;
        }
        *value = (u8) os->bitbuf;
        *count = (u8) os->bitcount;
        return (size_t) (os->next - out);
}
