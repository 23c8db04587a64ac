/*
 * Plays scripts of calls of zlib's deflate on two implementations at once.
 *
 * A script is bytes, read from stdin with their number in front (32 bits), so
 * that whoever makes them can also make them shorter. After each script the
 * program says "ok", or what was different and ends. The outputs need not be
 * equal; what a program can rely on must be: return codes, messages,
 * checksums, totals, headers, what the allocator is asked for, and above all
 * what comes out of an independent inflate.
 */
#include "zlib_sides.h"

enum { PLAIN_LIMIT = 1 << 20, CALLS_LIMIT = 1 << 20, ENOUGH = 1 << 21 };

/* A script, and the story of it for whoever has to understand a difference. */
struct script {
    const unsigned char *at, *end;
    char story[1 << 16];
    size_t told;
};

struct side {
    const struct zlib *z;
    z_stream streams[2], *strm; /* deflateCopy goes to the other one */
    struct heap heaps[2];       /* of the two streams */
    struct bytes out;
    size_t fed; /* of the plain data */
    struct decoder decoder;
};

/* Both sides, and what is the same for both. */
struct game {
    struct script *script;
    struct side sides[2];
    int window_bits;
    unsigned char plain[PLAIN_LIMIT];
    size_t length;            /* of the plain data: as far as it has been written, or may be */
    struct bytes dictionary;  /* set before the first byte */
    int owed;                 /* the flush that was begun but not drained, or -1 */
    bool begun, finished, at_byte;
    bool mixed; /* whether a dictionary was set, or the settings changed in between */
    gz_header header;
    unsigned char extra[64];
};

enum { NOTHING_OWED = -1 };

static void tell(struct script *script, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void tell(struct script *script, const char *format, ...) {
    va_list arguments;
    size_t room = sizeof script->story - script->told;
    va_start(arguments, format);
    int length = vsnprintf(script->story + script->told, room, format, arguments);
    va_end(arguments);
    script->told += (size_t)length < room ? (size_t)length : room - 1;
}

static void differ(struct game *game, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));
static void differ(struct game *game, const char *format, ...) {
    va_list arguments;
    printf("after%s: ", game->script->story);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    puts("");
    fflush(stdout);
    _exit(4);
}

static unsigned next(struct script *script) { return script->at < script->end ? *script->at++ : 0; }

static unsigned next16(struct script *script) {
    unsigned low = next(script);
    return low | next(script) << 8;
}

#define PICK(script, ...) pick(script, (const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))
static int pick(struct script *script, const int *choices, size_t count) { return choices[next(script) % count]; }

static bool one_in(struct script *script, unsigned n) { return next(script) % n == n - 1; }

/* From nothing to more than a window, small ones more often. */
static size_t some_length(struct script *script) {
    static const unsigned limits[] = {0, 4, 20, 300, 3000, 20000, 140000};
    unsigned limit = limits[next(script) % 7];
    return limit == 0 ? 0 : next16(script) * 2654435761u % limit;
}

/* Text, noise, runs, or what was there before. */
static void make_plain(struct script *script, unsigned char *plain, size_t before, size_t length) {
    static const char *const words[] = {"the ", "stream ", "of ", "bytes ", "<div class=\"", "\">", "0x", "\n", "window ", "and "};
    unsigned kind = next(script) % 5, state = next16(script) + 1;
    for (size_t i = 0; i < length;) {
        state = state * 1103515245u + 12345u;
        unsigned char *to = plain + before + i;
        size_t run = 1;
        if (kind == 0) {
            *to = (unsigned char)(state >> 16);
        } else if (kind == 1) {
            run = (state >> 16) % 700 + 1;
            memset(to, (int)(state >> 8) & 0xff, run < length - i ? run : length - i);
        } else if (kind == 2 && before + i > 0) {
            size_t back = (state >> 8) % (before + i < 40000 ? before + i : 40000) + 1;
            run = (state >> 4) % 60 + 1;
            for (size_t j = 0; j < run && i + j < length; j++) to[j] = *(to + j - back);
        } else {
            const char *word = words[(state >> 16) % 10];
            run = strlen(word);
            memcpy(to, word, run < length - i ? run : length - i);
        }
        i += run;
    }
}

/* --- what must be the same --- */

static const char *message(const z_stream *strm) { return strm->msg == NULL ? "none" : strm->msg; }

static void same_fields(struct game *game, const char *call, int code) {
    const z_stream *a = game->sides[0].strm, *b = game->sides[1].strm;
    /* Sides that had too little room may be at different points. */
    if (game->owed != NOTHING_OWED) return;
    if (code < 0 && strcmp(message(a), message(b)) != 0) differ(game, "%s: msg is %s, not %s", call, message(a), message(b));
    if (a->total_in != b->total_in) differ(game, "%s: total_in is %lu, not %lu", call, a->total_in, b->total_in);
    if (a->adler != b->adler) differ(game, "%s: adler is %lx, not %lx", call, a->adler, b->adler);
    if ((a->state == NULL) != (b->state == NULL)) differ(game, "%s: only one state is NULL", call);
}

static void same_codes(struct game *game, const char *call, int a, int b) {
    if (a != b) differ(game, "%s gives %d, not %d", call, a, b);
    same_fields(game, call, a);
}

static void same_requests(struct game *game, const char *call) {
    for (int i = 0; i < 2; i++) {
        const struct heap *a = &game->sides[0].heaps[i], *b = &game->sides[1].heaps[i];
        if (a->requests != b->requests) differ(game, "%s: %u requests for memory, not %u", call, a->requests, b->requests);
        for (unsigned j = 0; j < a->requests && j < REQUESTS; j++)
            if (a->items[j] != b->items[j] || a->sizes[j] != b->sizes[j])
                differ(game, "%s: request %u is for %u * %u bytes, not %u * %u", call, j, a->items[j], a->sizes[j], b->items[j], b->sizes[j]);
        if (a->live != b->live) differ(game, "%s: %ld blocks of memory are held, not %ld", call, a->live, b->live);
    }
}

/* Calls the same on both sides and compares. */
#define BOTH(game, call, ...)                                                                                  \
    ({                                                                                                         \
        int codes[2];                                                                                          \
        for (int which = 0; which < 2; which++) {                                                              \
            struct side *side = &(game)->sides[which];                                                         \
            codes[which] = side->z->call(__VA_ARGS__);                                                         \
        }                                                                                                      \
        same_codes(game, #call, codes[0], codes[1]);                                                           \
        tell((game)->script, " -> %d;", codes[0]);                                                             \
        codes[0];                                                                                              \
    })

/* --- decoding --- */

static void open_decoder(struct game *game, struct decoder *decoder) {
    int bits = game->window_bits, wrap = bits < 0 ? -1 : 1;
    if (bits == 8) bits = 9;
    memset(&decoder->stream, 0, sizeof decoder->stream);
    if (original.inflateInit2_(&decoder->stream, bits, ZLIB_VERSION, sizeof(z_stream)) != Z_OK) die("inflateInit2");
    if (wrap < 0 && game->dictionary.length > 0 &&
        original.inflateSetDictionary(&decoder->stream, game->dictionary.at, game->dictionary.length) != Z_OK)
        die("inflateSetDictionary");
    decoder->open = true;
    decoder->ended = false;
    decoder->taken = decoder->decoded.length = 0;
}

static void close_decoder(struct decoder *decoder) {
    if (decoder->open) original.inflateEnd(&decoder->stream);
    decoder->open = false;
}

/* Small steps: inflate takes what is in its output from there, however far behind the window that is. */
static void step(struct game *game, struct side *side) {
    struct decoder *decoder = &side->decoder;
    z_stream *strm = &decoder->stream;
    enum { STEP = 500 };
    strm->next_in = side->out.at + decoder->taken;
    strm->avail_in = (unsigned)(side->out.length - decoder->taken);
    strm->next_out = room_in(&decoder->decoded, STEP);
    strm->avail_out = STEP;
    int code = original.inflate(strm, Z_SYNC_FLUSH);
    decoder->taken = side->out.length - strm->avail_in;
    decoder->decoded.length += STEP - strm->avail_out;
    if (code == Z_NEED_DICT)
        code = original.inflateSetDictionary(strm, game->dictionary.at, (unsigned)game->dictionary.length);
    decoder->ended = code == Z_STREAM_END;
    if (code != Z_OK && code != Z_BUF_ERROR && code != Z_STREAM_END)
        differ(game, "the %s output is wrong at %zu of %zu: %s", side->z->name, decoder->taken, side->out.length, message(strm));
}

/* Whether all that went in must be there, or only a part of it. */
static void decode(struct game *game, struct side *side, bool all) {
    struct decoder *decoder = &side->decoder;
    if (!decoder->open) open_decoder(game, decoder);
    for (size_t before = SIZE_MAX; before != decoder->decoded.length + decoder->taken && !decoder->ended;) {
        before = decoder->decoded.length + decoder->taken;
        step(game, side);
    }
    size_t length = decoder->decoded.length;
    if (length > side->fed || memcmp(decoder->decoded.at, game->plain, length) != 0)
        differ(game, "the %s output decodes to something else", side->z->name);
    if (all && length != side->fed) differ(game, "the %s output lacks %zu of %zu bytes", side->z->name, side->fed - length, side->fed);
    bool may_end = game->finished || game->owed == Z_FINISH;
    if (decoder->ended ? !may_end : game->finished) differ(game, "the %s output %s", side->z->name, decoder->ended ? "ends early" : "does not end");
    if (decoder->ended && decoder->taken != side->out.length) differ(game, "the %s output goes on behind its end", side->z->name);
}

static void decode_both(struct game *game, bool all) {
    for (int i = 0; i < 2; i++) decode(game, &game->sides[i], all);
}

/* --- deflate --- */

/* One call, in which all pointers and numbers must agree. */
static int deflate_once(struct game *game, struct side *side, int flush, unsigned chunk, unsigned *left) {
    z_stream *strm = side->strm;
    unsigned char *in = game->plain + side->fed, *out = room_in(&side->out, chunk);
    unsigned avail = (unsigned)(game->length - side->fed);
    unsigned long total_in = strm->total_in, total_out = strm->total_out;
    strm->next_in = in, strm->avail_in = avail;
    strm->next_out = out, strm->avail_out = chunk;
    int code = side->z->deflate(strm, flush);
    unsigned taken = avail - strm->avail_in, written = chunk - strm->avail_out;
    if (taken > avail || written > chunk || strm->next_in != in + taken || strm->next_out != out + written ||
        strm->total_in != total_in + taken || strm->total_out != total_out + written)
        differ(game, "the %s deflate does not count right", side->z->name);
    side->fed += taken;
    side->out.length += written;
    *left = strm->avail_out;
    return code;
}

/* Until all is consumed and written. That nothing was left to do at the end counts as good. */
static int drain(struct game *game, struct side *side, int flush, unsigned chunk) {
    for (int calls = 0; calls < CALLS_LIMIT; calls++) {
        unsigned left;
        int code = deflate_once(game, side, flush, chunk, &left);
        if (code == Z_BUF_ERROR && calls > 0) {
            side->strm->msg = NULL;
            return Z_OK;
        }
        if (code != Z_OK) return code;
        if (left > 0 && flush == Z_FINISH) differ(game, "the %s deflate does not finish", side->z->name);
        if (left > 0 && side->fed != game->length) differ(game, "the %s deflate leaves input", side->z->name);
        if (left > 0) return code;
    }
    differ(game, "the %s deflate does not come to an end", side->z->name);
}

/* What nobody has taken was not written. */
static void cut_plain(struct game *game) {
    if (game->sides[0].fed != game->sides[1].fed) differ(game, "%zu bytes were taken, not %zu", game->sides[0].fed, game->sides[1].fed);
    game->length = game->sides[0].fed;
}

static void drain_both(struct game *game, int flush, unsigned chunk) {
    int codes[2];
    bool was_owed = game->owed != NOTHING_OWED;
    for (int i = 0; i < 2; i++) {
        codes[i] = drain(game, &game->sides[i], flush, chunk);
        /* One side may have done it all with little room. */
        if (was_owed && codes[i] == Z_BUF_ERROR) codes[i] = Z_OK;
    }
    game->owed = NOTHING_OWED;
    game->finished |= codes[1] == Z_STREAM_END;
    game->begun = true;
    same_codes(game, "deflate", codes[0], codes[1]);
    tell(game->script, " -> %d;", codes[0]);
    cut_plain(game);
    if (codes[0] == Z_OK) game->at_byte = flush == Z_SYNC_FLUSH || flush == Z_FULL_FLUSH;
    bool flushed = game->at_byte || game->finished;
    /*
     * A guess that zlib makes from the literals of the first block it compresses, whose end is its own affair: they
     * agree where there is only one block, and nothing before it to be referred to instead.
     */
    enum { ONE_BLOCK = 120 };
    bool guessed_alike = flushed && game->length <= ONE_BLOCK && !game->mixed;
    const z_stream *a = game->sides[0].strm, *b = game->sides[1].strm;
    if (guessed_alike && a->data_type != b->data_type) differ(game, "data_type is %d, not %d", a->data_type, b->data_type);
    decode_both(game, flushed);
}

/* Whatever was begun with too little room is brought to its end, so that both sides are at the same point. */
static void settle(struct game *game) {
    if (game->owed == NOTHING_OWED) return;
    tell(game->script, " settle");
    drain_both(game, game->owed, ENOUGH);
}

static size_t more_plain(struct game *game) {
    size_t length = some_length(game->script);
    if (length > PLAIN_LIMIT - game->length) length = PLAIN_LIMIT - game->length;
    make_plain(game->script, game->plain, game->length, length);
    game->length += length;
    return length;
}

static int some_flush(struct script *script) {
    return PICK(script, Z_NO_FLUSH, Z_NO_FLUSH, Z_NO_FLUSH, Z_PARTIAL_FLUSH, Z_SYNC_FLUSH, Z_FULL_FLUSH, Z_BLOCK, Z_FINISH);
}

static void play_deflate(struct game *game) {
    size_t length = more_plain(game);
    int flush = some_flush(game->script);
    /* With less than that a marker that just fits would be followed by another one. */
    unsigned chunk = (unsigned)PICK(game->script, ENOUGH, ENOUGH, 7, 12, 100, 1000, 4096, 50000);
    tell(game->script, " deflate(%zu bytes, flush %d, %u at a time)", length, flush, chunk);
    drain_both(game, flush, chunk);
}

/* One call with little room, after which the sides need not be at the same point. */
static void play_starved(struct game *game) {
    size_t length = more_plain(game);
    int flush = some_flush(game->script);
    unsigned chunk = next(game->script) % 40 + 1;
    tell(game->script, " deflate(%zu bytes, flush %d) with room for %u;", length, flush, chunk);
    if (game->finished) return cut_plain(game);
    for (int i = 0; i < 2; i++) {
        unsigned left;
        int code = deflate_once(game, &game->sides[i], flush, chunk, &left);
        if (code != Z_OK && code != Z_BUF_ERROR && code != Z_STREAM_END) differ(game, "the %s deflate gives %d", game->sides[i].z->name, code);
    }
    game->begun = true;
    game->at_byte = false;
    game->owed = flush;
}

static void play_wrong_arguments(struct game *game) {
    unsigned kind = next(game->script) % 6;
    tell(game->script, " wrong arguments %u", kind);
    for (int i = 0; i < 2; i++) {
        z_stream *strm = game->sides[i].strm;
        strm->next_in = kind == 1 ? NULL : game->plain, strm->avail_in = kind == 1 || kind == 3 ? 5 : 0;
        strm->next_out = kind == 2 ? NULL : room_in(&game->sides[i].out, 100), strm->avail_out = kind == 3 || kind == 4 ? 0 : 100;
    }
    static const int flushes[] = {6, 0, 0, 0, Z_SYNC_FLUSH, -1};
    BOTH(game, deflate, side->strm, flushes[kind]);
}

/* --- the other functions --- */

static int params_once(struct game *game, struct side *side, int level, int strategy, unsigned room) {
    unsigned avail = (unsigned)(game->length - side->fed);
    side->strm->next_in = game->plain + side->fed, side->strm->avail_in = avail;
    side->strm->next_out = room_in(&side->out, ENOUGH), side->strm->avail_out = room;
    int code = side->z->deflateParams(side->strm, level, strategy);
    side->fed += avail - side->strm->avail_in;
    side->out.length += room - side->strm->avail_out;
    return code;
}

static void play_params(struct game *game) {
    int level = PICK(game->script, 6, 1, 2, 3, 4, 5, 7, 8, 9, 0, -1, 10, -2);
    int strategy = PICK(game->script, 0, 0, 0, 0, 1, 2, 3, 4, 5, -1);
    bool no_room = one_in(game->script, 8);
    size_t length = no_room ? 0 : more_plain(game);
    tell(game->script, " deflateParams(%d, %d)%s with %zu bytes", level, strategy, no_room ? " without room" : "", length);
    int codes[2];
    for (int i = 0; i < 2; i++) codes[i] = params_once(game, &game->sides[i], level, strategy, no_room ? 0 : ENOUGH);
    /* The original needs no room where its last block happens to end with the last byte. */
    if (no_room && codes[0] == Z_BUF_ERROR && codes[1] == Z_OK) codes[0] = params_once(game, &game->sides[0], level, strategy, ENOUGH);
    same_codes(game, "deflateParams", codes[0], codes[1]);
    tell(game->script, " -> %d;", codes[0]);
    cut_plain(game);
    game->at_byte = false;
    game->mixed |= codes[0] == Z_OK;
}

static void play_tune(struct game *game) {
    int values[4];
    for (int i = 0; i < 4; i++) values[i] = (int)next16(game->script) % 300;
    tell(game->script, " deflateTune(%d, %d, %d, %d)", values[0], values[1], values[2], values[3]);
    BOTH(game, deflateTune, side->strm, values[0], values[1], values[2], values[3]);
}

/* An empty block with fixed codes: 10 bits that any decoder steps over, wherever blocks begin. */
static void play_prime(struct game *game) {
    enum { EMPTY_BLOCK = 2, ITS_LENGTH = 10 };
    int bits = PICK(game->script, ITS_LENGTH, ITS_LENGTH, 17, -1, 0);
    bool is_between_blocks = game->begun || game->window_bits < 0;
    if (bits > 0 && bits <= 16 && (!is_between_blocks || game->finished)) return;
    tell(game->script, " deflatePrime(%d)", bits);
    BOTH(game, deflatePrime, side->strm, bits, EMPTY_BLOCK);
    if (bits == ITS_LENGTH) game->at_byte = false;
}

static void play_pending(struct game *game) {
    unsigned pending[2] = {77, 77};
    int bits[2] = {77, 77};
    bool both = !one_in(game->script, 4);
    tell(game->script, " deflatePending");
    BOTH(game, deflatePending, side->strm, both ? &pending[which] : NULL, &bits[which]);
    if (game->at_byte && (bits[0] != bits[1] || pending[0] != pending[1])) differ(game, "%u bytes and %d bits are pending, not %u and %d", pending[0], bits[0], pending[1], bits[1]);
    if (bits[0] < 0 || (bits[0] > 7 && bits[1] <= 7)) differ(game, "%d bits are pending", bits[0]);
}

/* A raw stream takes one between flushes as well; its decoder then needs it at the same place. */
static void play_set_dictionary(struct game *game) {
    static unsigned char dictionary[140000];
    size_t length = some_length(game->script);
    make_plain(game->script, dictionary, 0, length);
    if (game->finished || (game->window_bits < 0 && game->begun && !game->at_byte)) return;
    tell(game->script, " deflateSetDictionary(%zu)", length);
    const unsigned char *given = one_in(game->script, 9) ? NULL : dictionary;
    int code = BOTH(game, deflateSetDictionary, side->strm, given, (unsigned)length);
    if (code != Z_OK) return;
    game->mixed = true;
    if (!game->begun) {
        append(&game->dictionary, dictionary, length);
        return;
    }
    for (int i = 0; i < 2; i++)
        if (original.inflateSetDictionary(&game->sides[i].decoder.stream, dictionary, (unsigned)length) != Z_OK) die("inflateSetDictionary");
}

/* How much of the window is there depends on when it slid; what is there does not. */
static void play_get_dictionary(struct game *game) {
    static unsigned char windows[2][1 << 15];
    unsigned lengths[2] = {0, 0};
    tell(game->script, " deflateGetDictionary");
    if (BOTH(game, deflateGetDictionary, side->strm, windows[which], &lengths[which]) != Z_OK) return;
    unsigned shorter = lengths[0] < lengths[1] ? lengths[0] : lengths[1];
    if (game->length + game->dictionary.length <= 250 && lengths[0] != lengths[1])
        differ(game, "a dictionary of %u bytes, not %u", lengths[0], lengths[1]);
    if (memcmp(windows[0] + lengths[0] - shorter, windows[1] + lengths[1] - shorter, shorter) != 0)
        differ(game, "another dictionary of %u bytes", shorter);
}

static void play_header(struct game *game) {
    static unsigned char text[] = "a name", comment[] = "and something more";
    unsigned parts = next(game->script);
    memset(game->extra, (int)parts, sizeof game->extra);
    game->header = (gz_header){
        .text = parts & 1, .time = next16(game->script), .os = (int)(parts >> 4), .hcrc = parts >> 1 & 1,
        .extra = parts & 4 ? game->extra : NULL, .extra_len = parts & 4 ? parts % sizeof game->extra : 0,
        .name = parts & 8 ? text : NULL, .comment = parts & 16 ? comment : NULL,
    };
    tell(game->script, " deflateSetHeader(%x)", parts);
    BOTH(game, deflateSetHeader, side->strm, parts % 7 == 6 ? NULL : &game->header);
}

static void play_bound(struct game *game) {
    size_t length = some_length(game->script);
    for (int i = 0; i < 2; i++) {
        struct side *side = &game->sides[i];
        if (side->z->deflateBound(side->strm, length) < length) differ(game, "the %s deflateBound is too small", side->z->name);
    }
}

/* Whole streams after a reset: deflateBound promises that one call is enough, and the original nearly keeps it. */
static void start_over(struct game *game);
static void play_at_once(struct game *game) {
    tell(game->script, " deflateReset");
    BOTH(game, deflateReset, side->strm);
    start_over(game);
    size_t length = more_plain(game);
    tell(game->script, " deflate(%zu bytes, flush 4) within deflateBound", length);
    int codes[2];
    for (int i = 0; i < 2; i++) {
        struct side *side = &game->sides[i];
        unsigned left, bound = (unsigned)side->z->deflateBound(side->strm, length);
        codes[i] = deflate_once(game, side, Z_FINISH, bound, &left);
    }
    if (codes[0] != Z_STREAM_END && codes[1] == Z_STREAM_END) differ(game, "deflateBound is too small");
    game->begun = true;
    game->owed = Z_FINISH;
    settle(game);
}

/* A stream that was moved is none any more. */
static void play_moved(struct game *game) {
    z_stream moved[2] = {*game->sides[0].strm, *game->sides[1].strm};
    tell(game->script, " a moved stream: deflate");
    BOTH(game, deflate, &moved[which], Z_FINISH);
    tell(game->script, " deflateReset");
    BOTH(game, deflateReset, &moved[which]);
    tell(game->script, " deflateEnd");
    BOTH(game, deflateEnd, &moved[which]);
}

static void play_copy(struct game *game) {
    unsigned fail_at = one_in(game->script, 4) ? next(game->script) % 7 : 0;
    bool keep_the_copy = one_in(game->script, 2), owed_finish = game->owed == Z_FINISH;
    tell(game->script, " deflateCopy%s, request %u fails", keep_the_copy ? ", going on with the copy" : "", fail_at);
    for (int i = 0; i < 2; i++) {
        struct side *side = &game->sides[i];
        int other = side->strm == &side->streams[0];
        side->heaps[other] = (struct heap){0};
        struct heap *mine = side->strm->opaque;
        if (mine != NULL) mine->fail_at = fail_at == 0 ? 0 : mine->requests + fail_at;
    }
    int code = BOTH(game, deflateCopy, &side->streams[side->strm == &side->streams[0]], side->strm);
    same_requests(game, "deflateCopy");
    for (int i = 0; i < 2; i++) {
        struct heap *mine = game->sides[i].strm->opaque;
        if (mine != NULL) mine->fail_at = 0;
    }
    if (code != Z_OK) return;
    int ends[2];
    for (int i = 0; i < 2; i++) {
        struct side *side = &game->sides[i];
        z_stream *source = side->strm, *copy = &side->streams[source == &side->streams[0]];
        if (keep_the_copy) side->strm = copy;
        ends[i] = side->z->deflateEnd(keep_the_copy ? source : copy);
    }
    if (ends[0] != ends[1] && !owed_finish) differ(game, "deflateEnd gives %d, not %d", ends[0], ends[1]);
    same_requests(game, "deflateEnd");
}

static void start_over(struct game *game) {
    for (int i = 0; i < 2; i++) {
        close_decoder(&game->sides[i].decoder);
        game->sides[i].fed = game->sides[i].out.length = 0;
    }
    game->length = game->dictionary.length = 0;
    game->owed = NOTHING_OWED;
    game->begun = game->finished = game->at_byte = game->mixed = false;
}

static void play_reset(struct game *game) {
    if (one_in(game->script, 5)) {
        tell(game->script, " deflateResetKeep");
        BOTH(game, deflateResetKeep, side->strm);
    }
    tell(game->script, " deflateReset");
    BOTH(game, deflateReset, side->strm);
    start_over(game);
}

/* What the settings write before the first block. */
static void same_wrapper(struct game *game) {
    const struct bytes *a = &game->sides[0].out, *b = &game->sides[1].out;
    size_t length = game->window_bits < 0 ? 0 : game->window_bits > 15 ? 10 : 2;
    if (game->window_bits > 15 && b->length > 10) {
        unsigned flags = b->at[3];
        length += flags & 4 ? 2u + b->at[10] + (b->at[11] << 8) : 0;
        length += flags & 8 ? sizeof "a name" : 0;
        length += flags & 16 ? sizeof "and something more" : 0;
        length += flags & 2 ? 2 : 0;
    } else if (length == 2 && b->length > 2 && b->at[1] & 32) {
        length += 4;
    }
    if (length > a->length || length > b->length) length = a->length < b->length ? a->length : b->length;
    for (size_t i = 0; i < length; i++)
        if (a->at[i] != b->at[i]) differ(game, "byte %zu of the header is %02x, not %02x", i, a->at[i], b->at[i]);
}

/* Nobody looks at the message of a call that went well. */
static void forget_messages(struct game *game) {
    for (int i = 0; i < 2; i++) game->sides[i].strm->msg = NULL;
}

static void play_one(struct game *game) {
    static void (*const acts[])(struct game *) = {
        play_deflate, play_deflate, play_deflate, play_deflate, play_starved, play_starved, play_params,
        play_params, play_tune, play_prime, play_pending, play_set_dictionary, play_get_dictionary, play_header,
        play_bound, play_at_once, play_moved, play_copy, play_reset, play_wrong_arguments,
    };
    void (*act)(struct game *) = acts[next(game->script) % (sizeof acts / sizeof *acts)];
    if (act != play_reset && act != play_copy && act != play_at_once) settle(game);
    forget_messages(game);
    act(game);
    same_wrapper(game);
}

/* --- a script --- */

static int start(struct game *game) {
    struct script *script = game->script;
    int level = PICK(script, 6, 1, -1, 9, 2, 3, 4, 5, 7, 8, 0, 6, 1, 10, -2);
    int bits = PICK(script, 15, -15, 31, 15, 31, -15, 9, -9, 25, 12, -12, 28, 8, 10, 27, -14, 0, 16, 24, -8, 40);
    int memory = PICK(script, 8, 9, 8, 8, 1, 2, 5, 7, 3, 0, 10);
    int strategy = PICK(script, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, -1);
    int method = one_in(script, 50) ? 7 : Z_DEFLATED, size = one_in(script, 50) ? 100 : sizeof(z_stream);
    const char *version = one_in(script, 50) ? "2.0" : one_in(script, 50) ? NULL : ZLIB_VERSION;
    bool own_heap = one_in(script, 2);
    unsigned fail_at = one_in(script, 10) ? next(script) % 7 : 0;
    game->window_bits = bits;
    for (int i = 0; i < 2; i++) {
        struct side *side = &game->sides[i];
        side->heaps[0].fail_at = fail_at;
        side->strm = &side->streams[0];
        side->strm->msg = "from before";
        if (own_heap) side->strm->zalloc = heap_alloc, side->strm->zfree = heap_free, side->strm->opaque = &side->heaps[0];
    }
    tell(script, " deflateInit2(level %d, bits %d, memory %d, strategy %d%s, request %u fails)", level, bits, memory, strategy, own_heap ? ", own allocator" : "", fail_at);
    int code = BOTH(game, deflateInit2_, side->strm, level, method, bits, memory, strategy, version, size);
    same_requests(game, "deflateInit2");
    for (int i = 0; i < 2; i++) game->sides[i].heaps[0].fail_at = 0;
    return code;
}

static void finish(struct game *game) {
    bool owed_finish = game->owed == Z_FINISH;
    for (int i = 0; i < 2; i++) decode(game, &game->sides[i], false);
    int codes[2];
    for (int i = 0; i < 2; i++) codes[i] = game->sides[i].z->deflateEnd(game->sides[i].strm);
    if (codes[0] != codes[1] && !owed_finish) differ(game, "deflateEnd gives %d, not %d", codes[0], codes[1]);
    same_requests(game, "deflateEnd");
    forget_messages(game);
    tell(game->script, " deflateEnd again");
    BOTH(game, deflateEnd, side->strm);
}

static void play(const unsigned char *bytes, size_t length) {
    static struct script script;
    static struct game game;
    script.at = bytes, script.end = bytes + length, script.told = 0;
    game.script = &script;
    for (int i = 0; i < 2; i++) {
        struct side *side = &game.sides[i];
        *side = (struct side){.z = i == 0 ? &linked : &original, .out = side->out, .decoder.decoded = side->decoder.decoded};
    }
    start_over(&game);
    if (start(&game) != Z_OK) return;
    for (int acts = 0; acts < 40 && script.at < script.end; acts++) play_one(&game);
    finish(&game);
    for (int i = 0; i < 2; i++) close_decoder(&game.sides[i].decoder);
}

int main(int argc, char **argv) {
    static unsigned char bytes[1 << 16];
    uint32_t length;
    load_original(argc < 2 || strcmp(argv[1], "one-namespace") != 0);
    while (fread(&length, sizeof length, 1, stdin) == 1) {
        if (length > sizeof bytes || fread(bytes, 1, length, stdin) != length) die("half a script");
        play(bytes, length);
        puts("ok");
        fflush(stdout);
    }
    return 0;
}
