/* libusdm.so.0: memory that a device could reach. */
#include "control.h"

#include <stdlib.h>
#include <unistd.h>

SIMULATED

/* Stands before the memory. */
struct owner {
    void *block;
    pid_t process;
};

API void *qaeMemAllocNUMA(size_t size, int node, size_t alignment)
{
    void *block = NULL;
    (void)node;
    size_t before = alignment > sizeof(struct owner) ? alignment : sizeof(struct owner);
    if (control(QAT)->fault == NO_INSTANCE || posix_memalign(&block, alignment, before + size) != 0)
        return NULL;
    char *memory = (char *)block + before;
    ((struct owner *)(void *)memory)[-1] = (struct owner) { block, getpid() };
    return memory;
}

API void qaeMemFreeNUMA(void **memory)
{
    struct owner *owner = (struct owner *)*memory - 1;
    look_for_trespass(control(QAT), owner->process);
    free(owner->block);
    *memory = NULL;
}

API uint64_t qaeVirtToPhysNUMA(void *address)
{
    return (uint64_t)(uintptr_t)address;
}
