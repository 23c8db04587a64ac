/* What ffi.rs says of ISA-L's structures, checked against its header when scripts/isal.sh builds the library. */
#include <stddef.h>

#include "igzip_lib.h"

#define AT(type, field, offset) _Static_assert(offsetof(struct type, field) == (offset), #type "." #field)

_Static_assert(sizeof(struct isal_zstream) == 82384, "isal_zstream");
AT(isal_zstream, next_out, 16);
AT(isal_zstream, level, 40);
AT(isal_zstream, level_buf, 48);
AT(isal_zstream, hist_bits, 62);
AT(isal_zstream, internal_state, 64);
AT(isal_zstate, state, 20);
AT(isal_zstate, bitbuf, 24);
AT(isal_zstate, crc, 64);
AT(isal_zstate, b_bytes_processed, 108);
AT(isal_zstate, buffer, 112);
AT(isal_zstate, head, 65936);
AT(BitBuf2, m_bit_count, 8);
AT(BitBuf2, m_out_start, 32);
_Static_assert(sizeof(struct BitBuf2) == 40, "BitBuf2");

_Static_assert(COMP_OK == 0 && NO_FLUSH == 0 && SYNC_FLUSH == 1, "status and flush");
_Static_assert(ZSTATE_NEW_HDR == 0 && ZSTATE_END == 11, "states");
_Static_assert(ISAL_DEF_LVL3_EXTRA_LARGE == 610304, "buffer of level 3");
