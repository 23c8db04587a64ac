/*
 * What a simulated device has counted, read from the file by which it is controlled. A program that is run without one,
 * to be compared with, is not told of any. Needs CHECK.
 */
#ifndef HASTEN_TEST_DEVICE_H
#define HASTEN_TEST_DEVICE_H

#include "../devices/layout.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

static int device_file = -1;
static size_t device_place;

static void read_device(const char *control_file, enum engine engine) {
    device_file = open(control_file, O_RDONLY | O_CLOEXEC);
    CHECK(device_file >= 0);
    device_place = offsetof(struct control, blocks) + (size_t)engine * sizeof(struct block);
}

static bool has_device(void) { return device_file >= 0; }

static uint64_t counted(size_t counter) {
    uint64_t value = 0;
    CHECK(!has_device() ||
          pread(device_file, &value, sizeof value, (off_t)(device_place + counter)) == sizeof value);
    return value;
}

/* Sessions that were opened, and operations that were accepted. */
static uint64_t sessions_so_far(void) { return counted(offsetof(struct block, opened)); }
static uint64_t operations_so_far(void) { return counted(offsetof(struct block, operations)); }

#endif
