// What an executable needs of its own, and a library does not.
//
// Since glibc 2.34 the C library runs the initialisers of an executable. Before, code of the executable did, which the
// start files of today no longer bring: on an older glibc nobody would run them. So the executable brings them itself. A
// newer glibc takes it for a program of that age, and runs them in the same way.
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>

typedef void initialiser(int count, char **arguments, char **environment);
typedef int program(int count, char **arguments, char **environment);

extern void _init(void);
extern initialiser *__init_array_start[] __attribute__((visibility("hidden")));
extern initialiser *__init_array_end[] __attribute__((visibility("hidden")));

static void initialise(int count, char **arguments, char **environment) {
    _init();
    for (initialiser **next = __init_array_start; next != __init_array_end; next++) (*next)(count, arguments, environment);
}

// The linker's --wrap puts the first in place of the second.
int __real___libc_start_main(program *, int, char **, initialiser *, void (*)(void), void (*)(void), void *);
int __wrap___libc_start_main(program *, int, char **, initialiser *, void (*)(void), void (*)(void), void *)
    __attribute__((visibility("default")));
int __wrap___libc_start_main(program *main, int count, char **arguments, initialiser *init, void (*fini)(void),
                             void (*loader_fini)(void), void *stack_end) {
    return __real___libc_start_main(main, count, arguments, init ? init : initialise, fini, loader_fini, stack_end);
}

#ifdef DLFO_STRUCT_HAS_EH_DBASE
// libgcc's unwinder, which the command links statically for the backtrace of a panic, asks this of glibc 2.35 and newer.
struct search {
    uintptr_t address;
    struct dl_find_object *found;
};

static int look(struct dl_phdr_info *object, size_t size, void *context) {
    (void)size;
    struct search *search = context;
    int is_here = 0;
    for (int at = 0; at < object->dlpi_phnum; at++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[at];
        uintptr_t begin = object->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_GNU_EH_FRAME) search->found->dlfo_eh_frame = (void *)begin;
        if (segment->p_type != PT_LOAD || search->address - begin >= segment->p_memsz) continue;
        is_here = 1;
        search->found->dlfo_map_start = (void *)begin;
        search->found->dlfo_map_end = (void *)(begin + segment->p_memsz);
    }
    if (is_here) return search->found->dlfo_eh_frame != NULL;
    *search->found = (struct dl_find_object){0};
    return 0;
}

int _dl_find_object(void *address, struct dl_find_object *found) {
    struct search search = {(uintptr_t)address, found};
    *found = (struct dl_find_object){0};
    return dl_iterate_phdr(look, &search) ? 0 : -1;
}
#endif
