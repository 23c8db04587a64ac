/* A small file, mapped by test and simulated library alike, that says what goes wrong, and what was counted.
 * HASTEN_SIMULATED_DEVICES names it; otherwise it is called `control` and lies beside the library. Without it nothing goes
 * wrong. core/device/tests/simulated/control.rs is the other side. */
#ifndef HASTEN_LAYOUT_H
#define HASTEN_LAYOUT_H

#include <stdint.h>

enum engine { QATZIP, QPL, DML, QAT, DLB, ENGINES };

enum fault {
    NONE,
    INIT_FAILURE,   /* starting fails */
    NO_INSTANCE,    /* starting finds no instance or queue left */
    SLOW,           /* every operation takes `milliseconds` longer */
    HANG,           /* operations do not end as long as this stands */
    WRONG_BYTES,    /* success is reported, and the output is wrong */
    ABORT,          /* operations fail with the library's general error */
    GONE,           /* operations and starts fail as if the device had been unplugged */
    PARTIAL,        /* success is reported for a part of the work */
    QUEUE_FULL,     /* nothing is accepted */
    RESTARTING,     /* operations fail as while a device is being reset */
    HANG_INIT,      /* starting does not end as long as this stands */
    TOO_LONG,       /* success is reported with more output than there was room for */
    FAULTS
};

struct block {
    _Atomic uint32_t fault;
    _Atomic uint32_t milliseconds;
    _Atomic uint32_t generation; /* sessions of an earlier one are dead: the device was reset */
    _Atomic uint32_t trespasses; /* calls of a child for what is its parent's */
    _Atomic uint64_t opened;    /* sessions */
    _Atomic uint64_t operations; /* accepted, good ones and others */
    _Atomic uint64_t faulted;
};

struct control {
    uint32_t magic;
    uint32_t reserved;
    struct block blocks[ENGINES];
};

#define CONTROL_MAGIC 0x6d697368u /* "hsim" */

#endif
