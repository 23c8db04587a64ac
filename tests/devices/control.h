/* What the simulated libraries share: a small file, mapped by test and library alike, that says what goes wrong.
 * HASTEN_SIMULATED_DEVICES names it; otherwise it is called `control` and lies beside the library. Without it nothing goes
 * wrong. core/device/tests/simulated/control.rs is the other side. */
#ifndef HASTEN_CONTROL_H
#define HASTEN_CONTROL_H

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
    _Atomic uint32_t reserved;
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

/* Never null. */
struct block *control(enum engine engine);

/* Sleeps through a SLOW or HANG; returns the fault that then stands. */
enum fault begin(struct block *block);

void count_fault(struct block *block);
void sleep_milliseconds(uint32_t milliseconds);
uint64_t now_milliseconds(void);

/* Damages a result: a byte somewhere in the middle. */
void damage(uint8_t *bytes, uint64_t length);

#define SIMULATED __attribute__((visibility("default"))) const int hasten_simulated = 1;
#define API __attribute__((visibility("default")))

#endif
