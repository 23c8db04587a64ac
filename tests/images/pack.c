// Packs a text with zlib and unpacks it again; prints how large it became.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { SIZE = 300000 };

int main(void) {
    static unsigned char text[SIZE], packed[SIZE], unpacked[SIZE + 1];
    unsigned state = 1;
    for (int i = 0; i < SIZE; i++) {
        state = state * 1103515245 + 12345;
        text[i] = "etaoin shrdlu cmfwyp"[(state >> 16) % 20 * ((state >> 24) % 3) / 2];
    }
    z_stream stream = {.next_in = text, .avail_in = SIZE, .next_out = packed, .avail_out = SIZE};
    if (deflateInit(&stream, 1) || deflate(&stream, Z_FINISH) != Z_STREAM_END) return 1;
    unsigned long length = stream.total_out;
    deflateEnd(&stream);
    z_stream back = {.next_in = packed, .avail_in = length, .next_out = unpacked, .avail_out = SIZE + 1};
    if (inflateInit(&back) || inflate(&back, Z_FINISH) != Z_STREAM_END || back.total_out != SIZE) return 2;
    inflateEnd(&back);
    if (memcmp(text, unpacked, SIZE)) return 3;
    printf("%lu\n", length);
    return 0;
}
