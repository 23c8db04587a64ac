/* Raw deflate by the system's zlib, for the libraries that stand for deflate devices. */
#ifndef HASTEN_INFLATE_H
#define HASTEN_INFLATE_H

#include <stdint.h>
#include <string.h>
#include <zlib.h>

/* Z_OK, Z_BUF_ERROR or Z_DATA_ERROR. Lengths become what was read and written. */
static int raw_deflate(int level, int window, const uint8_t *in, uint32_t *in_length, uint8_t *out, uint32_t *out_length)
{
    z_stream stream;
    memset(&stream, 0, sizeof stream);
    if (deflateInit2(&stream, level, Z_DEFLATED, -window, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return Z_DATA_ERROR;
    stream.next_in = (uint8_t *)in;
    stream.avail_in = *in_length;
    stream.next_out = out;
    stream.avail_out = *out_length;
    int status = deflate(&stream, Z_FINISH);
    *in_length = (uint32_t)stream.total_in;
    *out_length = (uint32_t)stream.total_out;
    deflateEnd(&stream);
    return status == Z_STREAM_END ? Z_OK : Z_BUF_ERROR;
}

static int raw_inflate(int window, const uint8_t *in, uint32_t *in_length, uint8_t *out, uint32_t *out_length)
{
    z_stream stream;
    memset(&stream, 0, sizeof stream);
    if (inflateInit2(&stream, -window) != Z_OK)
        return Z_DATA_ERROR;
    stream.next_in = (uint8_t *)in;
    stream.avail_in = *in_length;
    stream.next_out = out;
    stream.avail_out = *out_length;
    int status = inflate(&stream, Z_FINISH);
    *in_length = (uint32_t)stream.total_in;
    *out_length = (uint32_t)stream.total_out;
    int is_short = stream.avail_out == 0;
    inflateEnd(&stream);
    if (status == Z_STREAM_END)
        return Z_OK;
    return is_short ? Z_BUF_ERROR : Z_DATA_ERROR;
}

#endif
