/* libdml.so over memcpy: a job ends at its second check. */
#include "job.h"

#include <stddef.h>
#include <string.h>

struct version {
    uint8_t name[30], minimal_cpu_isa[16], date[15], version[20], hw_minimal_version[30], commit[12];
    uint32_t major, minor, patch;
};

struct job {
    uint8_t *source, *source_2, *target, *target_2;
    uint32_t *crc;
    uint32_t source_length, target_length, offset;
    uint8_t pattern[8];
    uint32_t operation, result, expected_result;
    uint64_t flags;
    uint32_t dif[6];
    uint32_t numa_id;
    uint8_t *internal;
};

struct whole {
    struct job job;
    struct progress progress;
};

_Static_assert(offsetof(struct version, major) == 124, "dml_library_version_t");
_Static_assert(sizeof(struct job) == 120, "dml_job_t");
_Static_assert(offsetof(struct job, operation) == 60, "dml_job_t");
_Static_assert(offsetof(struct job, flags) == 72, "dml_job_t");

enum { OK = 0, BEING_PROCESSED = 2, INTERNAL = 3, PATH = 6, OVERFLOW_ = 24, TIMEOUT = 44, NO_LIBACCEL = 100, NO_QUEUES = 102 };
enum { HARDWARE = 2, MEM_MOVE = 3 };

SIMULATED

API const struct version *dml_get_library_version(void)
{
    static const struct version version = { .major = 1, .minor = 2, .patch = 0 };
    return &version;
}

static const struct refusals REFUSALS = { .no_libaccel = NO_LIBACCEL, .no_queues = NO_QUEUES, .queue_full = OVERFLOW_ };

API int dml_get_job_size(uint32_t path, uint32_t *size)
{
    *size = sizeof(struct whole);
    return path == HARDWARE ? library_started(control(DML), &REFUSALS) : PATH;
}

API int dml_init_job(uint32_t path, struct whole *job)
{
    struct block *block = control(DML);
    int status = path == HARDWARE ? library_started(block, &REFUSALS) : PATH;
    if (status != OK)
        return status;
    job->job.numa_id = (uint32_t)-1;
    job_made(&job->progress, block);
    return OK;
}

API int dml_submit_job(struct whole *job)
{
    if (job->job.operation != MEM_MOVE)
        return 13;
    return job_submitted(&job->progress, control(DML), &REFUSALS);
}

API int dml_check_job(struct whole *job)
{
    struct block *block = control(DML);
    uint32_t length = job->job.source_length, fault = job->progress.fault;
    if (job_is_under_way(&job->progress, block))
        return BEING_PROCESSED;
    if (job_failed(&job->progress, block))
        return fault == RESTARTING ? TIMEOUT : INTERNAL;
    if (fault == PARTIAL || fault == WRONG_BYTES)
        count_fault(block);
    memcpy(job->job.target, job->job.source, fault == PARTIAL ? length / 2 : length);
    if (fault == WRONG_BYTES)
        damage(job->job.target, length);
    return OK;
}

API int dml_finalize_job(struct whole *job)
{
    (void)job;
    return OK;
}
