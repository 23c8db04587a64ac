// Keeps objects of given sizes, replaces them, and prints how many percent of their bytes are in the far reservation.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uintptr_t RESERVED = (uintptr_t)1 << 40;

// The far reservation ends where the one huge mapping without access does.
static uintptr_t end_of_far(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512], access[8];
    unsigned long start, end;
    while (fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx %7s", &start, &end, access) == 3 && end - start > RESERVED / 2 &&
            strcmp(access, "---p") == 0) {
            fclose(maps);
            return end;
        }
    }
    exit(3);
}

int main(int argc, char **argv) {
    enum { COUNT = 40000 };
    static char *kept[COUNT];
    static size_t sizes[COUNT];
    uintptr_t end = end_of_far();
    uint64_t state = 1;
    for (int i = 0; i < 3 * COUNT; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        size_t size = atoi(argv[1 + (state >> 40) % (argc - 1)]);
        free(kept[i % COUNT]);
        kept[i % COUNT] = malloc(size);
        sizes[i % COUNT] = size;
        kept[i % COUNT][size - 1] = 1;
    }
    double far = 0, all = 0;
    for (int i = 0; i < COUNT; i++) {
        all += sizes[i];
        if (end - RESERVED <= (uintptr_t)kept[i] && (uintptr_t)kept[i] < end) far += sizes[i];
    }
    printf("%.2f\n", 100 * far / all);
    return 0;
}
