/* What the simulated libraries share. */
#ifndef HASTEN_CONTROL_H
#define HASTEN_CONTROL_H

#include "layout.h"

/* Never null. */
struct block *control(enum engine engine);

/* Sleeps through a SLOW or HANG; returns the fault that then stands. */
enum fault begin(struct block *block);

void count_fault(struct block *block);

/* Counts a call for what another process has made. */
void look_for_trespass(struct block *block, int32_t maker);
void sleep_milliseconds(uint32_t milliseconds);
uint64_t now_milliseconds(void);

/* Damages a result: a byte somewhere in the middle. */
void damage(uint8_t *bytes, uint64_t length);

#define SIMULATED __attribute__((visibility("default"))) const int hasten_simulated = 1;
#define API __attribute__((visibility("default")))

#endif
