/* libqpl.so.1 over zlib: the functions that hasten calls, and nothing else. A job ends at its second check. */
#include "inflate.h"
#include "job.h"

#include <stddef.h>

struct job {
    uint8_t *next_in;
    uint32_t available_in, total_in;
    uint8_t *next_out;
    uint32_t available_out, total_out;
    uint32_t operation, flags, crc, xor_checksum, last_bit_offset, level, statistics_mode;
    void *huffman_table, *dictionary;
    uint32_t mini_block_size;
    uint64_t *idx_array;
    uint32_t idx_max_size, idx_num_written;
    uint8_t decompression_end, ignore_start_bits, ignore_end_bits;
    uint64_t crc64_poly, crc64;
    uint8_t *next_src2;
    uint32_t available_src2, src1_bit_width, src2_bit_width, num_input_elements, out_bit_width, param_low, param_high;
    uint32_t drop_initial_bytes, initial_output_index, parser, first_index_min_value, last_index_max_value, sum_value;
    int32_t numa_id;
    void *data[6];
    /* Ours. */
    struct progress progress;
};

_Static_assert(offsetof(struct job, next_out) == 16, "qpl_job");
_Static_assert(offsetof(struct job, operation) == 32, "qpl_job");
_Static_assert(offsetof(struct job, level) == 52, "qpl_job");
_Static_assert(offsetof(struct job, huffman_table) == 64, "qpl_job");
_Static_assert(offsetof(struct job, decompression_end) == 104, "qpl_job");

enum {
    OK = 0, BEING_PROCESSED = 1, MORE_OUTPUT = 2, QUEUES_ARE_BUSY = 5, INTERNAL = 6, BAD_DISTANCE = 217, NO_LIBACCEL = 501,
    NO_QUEUES = 503, HARDWARE = 1
};

SIMULATED

static const struct refusals REFUSALS = { .no_libaccel = NO_LIBACCEL, .no_queues = NO_QUEUES, .queue_full = QUEUES_ARE_BUSY };

API const char *qpl_get_library_version(void)
{
    return "1.6.0";
}

API int qpl_get_job_size(int path, uint32_t *size)
{
    *size = sizeof(struct job);
    return path == HARDWARE ? library_started(control(QPL), &REFUSALS) : 54;
}

API int qpl_init_job(int path, struct job *job)
{
    struct block *block = control(QPL);
    if (path != HARDWARE)
        return 54;
    int status = library_started(block, &REFUSALS);
    if (status != OK)
        return status;
    job->numa_id = -1;
    job_made(&job->progress, block);
    return OK;
}

API int qpl_submit_job(struct job *job)
{
    return job_submitted(&job->progress, control(QPL), &REFUSALS);
}

static int work(struct job *job, struct block *block)
{
    uint32_t read = job->available_in, written = job->available_out, fault = job->progress.fault;
    int status = job->operation == 1 ? raw_deflate(1, 12, job->next_in, &read, job->next_out, &written)
                                     : raw_inflate(15, job->next_in, &read, job->next_out, &written);
    if (status != Z_OK)
        return status == Z_BUF_ERROR ? MORE_OUTPUT : BAD_DISTANCE;
    if (fault == WRONG_BYTES || fault == PARTIAL || fault == TOO_LONG)
        count_fault(block);
    if (fault == WRONG_BYTES)
        damage(job->next_out, written);
    if (fault == PARTIAL) {
        read /= 2;
        written /= 2;
    }
    if (fault == TOO_LONG)
        written = job->available_out + 1;
    job->total_in = read;
    job->total_out = written;
    return OK;
}

API int qpl_check_job(struct job *job)
{
    struct block *block = control(QPL);
    if (job_is_under_way(&job->progress, block))
        return BEING_PROCESSED;
    return job_failed(&job->progress, block) ? INTERNAL : work(job, block);
}

API int qpl_fini_job(struct job *job)
{
    (void)job;
    return OK;
}
