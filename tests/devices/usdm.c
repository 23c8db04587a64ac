/* libusdm.so.0: memory that a device could reach. */
#include "control.h"

#include <stdlib.h>

SIMULATED

API void *qaeMemAllocNUMA(size_t size, int node, size_t alignment)
{
    void *memory = NULL;
    (void)node;
    if (control(QAT)->fault == NO_INSTANCE || posix_memalign(&memory, alignment, size) != 0)
        return NULL;
    return memory;
}

API void qaeMemFreeNUMA(void **memory)
{
    free(*memory);
    *memory = NULL;
}

API uint64_t qaeVirtToPhysNUMA(void *address)
{
    return (uint64_t)(uintptr_t)address;
}
