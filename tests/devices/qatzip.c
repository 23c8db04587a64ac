/* libqatzip.so.3 over zlib: the functions that hasten calls, and nothing else. */
#include "control.h"
#include "inflate.h"

#include <stdlib.h>
#include <unistd.h>

struct session {
    long hardware_status;
    int thread_status;
    void *internal;
    unsigned long total_in, total_out;
};

struct parameters {
    unsigned direction, level;
    unsigned char algorithm;
    unsigned forks;
    unsigned char software;
    unsigned hardware_buffer, stream_buffer, input_threshold, request_threshold, wait_threshold;
    unsigned polling, sensitive, huffman, format;
};

_Static_assert(sizeof(struct session) == 40, "QzSession_T");
_Static_assert(sizeof(struct parameters) == 56, "QzSessionParamsDeflate_T");

enum { OK = 0, PARAMS = -1, FAIL = -2, BUF_ERROR = -3, DATA_ERROR = -4, NOSW_NO_HW = -101, NOSW_NO_INST_ATTACH = -103 };

struct state {
    struct parameters parameters;
    uint32_t generation;
    int32_t process;
};

SIMULATED

static int started(struct block *block)
{
    while (block->fault == HANG_INIT)
        sleep_milliseconds(5);
    switch (block->fault) {
    case INIT_FAILURE: count_fault(block); return FAIL;
    case NO_INSTANCE: count_fault(block); return NOSW_NO_INST_ATTACH;
    case GONE: count_fault(block); return NOSW_NO_HW;
    default: return OK;
    }
}

API int qzInit(struct session *session, unsigned char software)
{
    struct block *block = control(QATZIP);
    if (session == NULL || software != 0)
        return PARAMS;
    int status = started(block);
    if (status == OK)
        block->opened++;
    return status;
}

API int qzGetDefaultsDeflate(struct parameters *parameters)
{
    *parameters = (struct parameters) {
        .direction = 2, .level = 1, .algorithm = 8, .forks = 3, .software = 1, .hardware_buffer = 65536,
        .stream_buffer = 65536, .input_threshold = 1024, .request_threshold = 32, .wait_threshold = 8, .format = 2,
    };
    return OK;
}

API int qzSetupSessionDeflate(struct session *session, struct parameters *parameters)
{
    struct block *block = control(QATZIP);
    if (session == NULL || parameters->format != 3 || parameters->level < 1 || parameters->level > 9)
        return PARAMS;
    int status = started(block);
    if (status != OK)
        return status;
    struct state *state = malloc(sizeof *state);
    state->parameters = *parameters;
    state->generation = block->generation;
    state->process = getpid();
    session->internal = state;
    return OK;
}

/* What goes wrong before the work is done; 1 if nothing does. */
static int before(struct session *session, struct block *block, enum fault *fault)
{
    struct state *state = session->internal;
    *fault = begin(block);
    if (state != NULL)
        look_for_trespass(block, state->process);
    if (state == NULL || state->generation != block->generation)
        return NOSW_NO_HW;
    switch (*fault) {
    case ABORT: count_fault(block); return FAIL;
    case GONE: count_fault(block); return NOSW_NO_HW;
    case QUEUE_FULL:
    case RESTARTING: count_fault(block); return -5;
    default: return 1;
    }
}

static int after(struct block *block, enum fault fault, int status, unsigned *read, uint8_t *out, unsigned *written,
                 unsigned room)
{
    if (status != Z_OK)
        return status == Z_BUF_ERROR ? BUF_ERROR : DATA_ERROR;
    if (fault == WRONG_BYTES || fault == PARTIAL || fault == TOO_LONG)
        count_fault(block);
    if (fault == WRONG_BYTES)
        damage(out, *written);
    if (fault == PARTIAL) {
        *read /= 2;
        *written /= 2;
    }
    if (fault == TOO_LONG)
        *written = room + 1;
    return OK;
}

API int qzCompress(struct session *session, const uint8_t *in, unsigned *in_length, uint8_t *out, unsigned *out_length,
                   unsigned last)
{
    struct block *block = control(QATZIP);
    enum fault fault;
    unsigned room = *out_length;
    (void)last;
    int status = before(session, block, &fault);
    if (status != 1)
        return status;
    int level = (int)((struct state *)session->internal)->parameters.level;
    return after(block, fault, raw_deflate(level, 15, in, in_length, out, out_length), in_length, out, out_length, room);
}

API int qzDecompress(struct session *session, const uint8_t *in, unsigned *in_length, uint8_t *out, unsigned *out_length)
{
    struct block *block = control(QATZIP);
    enum fault fault;
    unsigned room = *out_length;
    int status = before(session, block, &fault);
    if (status != 1)
        return status;
    return after(block, fault, raw_inflate(15, in, in_length, out, out_length), in_length, out, out_length, room);
}

API int qzTeardownSession(struct session *session)
{
    struct state *state = session->internal;
    if (state != NULL)
        look_for_trespass(control(QATZIP), state->process);
    free(state);
    session->internal = NULL;
    return OK;
}

API int qzClose(struct session *session)
{
    return qzTeardownSession(session);
}
