/* Jobs that are submitted and looked at, as libqpl and libdml have them: how far one is, and what goes wrong on the way. */
#ifndef HASTEN_JOB_H
#define HASTEN_JOB_H

#include "control.h"

#include <unistd.h>

/* Behind the library's own fields. */
struct progress {
    uint64_t ends;
    uint32_t generation, checks, fault;
    int32_t process;
};

/* What a library says where it cannot be used. */
struct refusals {
    int no_libaccel, no_queues, queue_full;
};

static int library_started(struct block *block, const struct refusals *refusals)
{
    while (block->fault == HANG_INIT)
        sleep_milliseconds(5);
    switch (block->fault) {
    case INIT_FAILURE: count_fault(block); return refusals->no_libaccel;
    case NO_INSTANCE:
    case GONE: count_fault(block); return refusals->no_queues;
    default: return 0;
    }
}

static void job_made(struct progress *progress, struct block *block)
{
    progress->generation = block->generation;
    progress->process = getpid();
    block->opened++;
}

static int job_submitted(struct progress *progress, struct block *block, const struct refusals *refusals)
{
    block->operations++;
    look_for_trespass(block, progress->process);
    if (progress->generation != block->generation)
        return refusals->no_queues;
    progress->fault = block->fault;
    progress->checks = 0;
    progress->ends = now_milliseconds() + (progress->fault == SLOW ? block->milliseconds : 0);
    switch (progress->fault) {
    case QUEUE_FULL: count_fault(block); return refusals->queue_full;
    case GONE: count_fault(block); return refusals->no_queues;
    default: return 0;
    }
}

/* A job ends at its second look at the earliest. */
static int job_is_under_way(struct progress *progress, struct block *block)
{
    int hangs = progress->fault == HANG && block->fault == HANG;
    return hangs || now_milliseconds() < progress->ends || progress->checks++ == 0;
}

/* Whether it has ended badly. */
static int job_failed(struct progress *progress, struct block *block)
{
    int failed = progress->fault == HANG || progress->fault == ABORT || progress->fault == RESTARTING;
    if (failed)
        count_fault(block);
    return failed;
}

#endif
