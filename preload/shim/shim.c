// libhasten.so: what an image names in LD_PRELOAD.
//
// A library that a loader cannot use does not stay out: musl ends the program, and so does a glibc without a version that
// the library asks for. This one asks for nothing. It needs no library, and every reference is weak, so that it loads under
// every loader; it looks at what it finds in the process, and only then, with dlopen, which may fail, come the libraries
// beside it, or for musl those in the folder musl there.
#include <link.h>
#include <stddef.h>

// The floor of the libraries beside it, as in scripts/floor.sh.
enum { FLOOR_MAJOR = 2, FLOOR_MINOR = 17 };
enum { NOW = 2, FROM_LIBC = (int)0x80000000, LONGEST_PATH = 4096 };

#define IF_THERE __attribute__((weak))
extern const char *gnu_get_libc_version(void) IF_THERE;
extern void *dlopen(const char *path, int mode) IF_THERE;
extern char *dlerror(void) IF_THERE;
// Until glibc 2.34, dlopen was in a library that a program need not have.
extern void *__libc_dlopen_mode(const char *path, int mode) IF_THERE;
extern int dl_iterate_phdr(int (*each)(struct dl_phdr_info *, size_t, void *), void *argument) IF_THERE;
extern int *__errno_location(void) IF_THERE;

// Where musl's loader enters its last stage. Nothing else has that, not even what poses as glibc on Alpine.
extern void __dls3(size_t *stack, size_t *auxiliary) IF_THERE;
extern char **environ IF_THERE;

extern unsigned long getauxval(unsigned long type) IF_THERE;

enum { EXECUTABLE = 31 };  // AT_EXECFN

enum libc { UNKNOWN, GLIBC, MUSL };

static const struct {
    const char *name;     // as HASTEN_DISABLE has it
    const char *program;  // which it is for: what the executable's name begins with, or null for any
    const char *asked;    // the variable, with the sign behind it, by which a user asks for it, or null if nobody has to
    int is_for_musl;
} ACCELERATORS[] = {
    {"tls", NULL, NULL, 1},
    {"gzip", NULL, NULL, 1},
    {"envoy", "envoy", NULL, 0},
    {"readcache", NULL, "HASTEN_READ_CACHE=", 0},
    {"wal", NULL, "HASTEN_WAL=", 0},
    {"tier", NULL, "HASTEN_TIER=", 0},
};

struct path {
    char text[LONGEST_PATH];
    size_t length;
};

static int number(const char **text) {
    int value = 0;
    for (; **text >= '0' && **text <= '9' && value < 100000; (*text)++) value = value * 10 + (**text - '0');
    return value;
}

static int is_of_floor(const char *version) {
    int major = number(&version);
    if (*version != '.') return 0;
    version++;
    return major > FLOOR_MAJOR || (major == FLOOR_MAJOR && number(&version) >= FLOOR_MINOR);
}

static enum libc libc_here(void) {
    if (!dl_iterate_phdr || !(dlopen || __libc_dlopen_mode)) return UNKNOWN;
    if (__dls3) return dlopen ? MUSL : UNKNOWN;
    return gnu_get_libc_version && is_of_floor(gnu_get_libc_version()) ? GLIBC : UNKNOWN;
}

static int is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static int ends(char c) { return !c || c == ',' || is_blank(c); }

// Whether the word that begins here is `name`, which is lower case, in any case.
static int is_named(const char *word, const char *name) {
    for (; *name; word++, name++)
        if ((*word >= 'A' && *word <= 'Z' ? *word + ('a' - 'A') : *word) != *name) return 0;
    return ends(*word);
}

static int is_disabled(const char *list, const char *accelerator) {
    while (list && *list) {
        if (is_named(list, accelerator) || is_named(list, "all") || is_named(list, "1")) return 1;
        while (!ends(*list)) list++;
        if (*list) list++;
    }
    return 0;
}

// Whether the list, which somebody chose, has the accelerator.
static int is_chosen(const char *list, const char *accelerator) {
    while (*list) {
        if (is_named(list, accelerator)) return 1;
        while (!ends(*list)) list++;
        if (*list) list++;
    }
    return 0;
}

// The value of the variable whose name, with the sign behind it, is this, or null.
static const char *variable(char **environment, const char *name) {
    for (; environment && *environment; environment++) {
        size_t i = 0;
        while (name[i] && (*environment)[i] == name[i]) i++;
        if (!name[i]) return *environment + i;
    }
    return NULL;
}

// Whether the name of the executable, without its directory, begins with this.
static int is_program(const char *beginning) {
    const char *path = getauxval ? (const char *)getauxval(EXECUTABLE) : NULL, *name = path;
    if (!path) return 0;
    for (; *path; path++)
        if (*path == '/') name = path + 1;
    while (*beginning && *beginning == *name) beginning++, name++;
    return !*beginning;
}

// Whether an accelerator is for this program, and asked for if it has to be.
static int is_wanted(size_t accelerator, char **variables) {
    const char *program = ACCELERATORS[accelerator].program, *asked = ACCELERATORS[accelerator].asked;
    return (!program || is_program(program)) && (!asked || variable(variables, asked));
}

static void append(struct path *path, const char *text) {
    while (*text && path->length < LONGEST_PATH - 1) path->text[path->length++] = *text++;
    path->text[path->length] = 0;
}

// Of all that is loaded, the object that has this function is this library: its path, up to the last slash.
static int own_directory(struct dl_phdr_info *object, size_t size, void *found) {
    struct path *path = found;
    (void)size;
    ElfW(Addr) here = (ElfW(Addr))own_directory;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        ElfW(Addr) start = object->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_LOAD || here < start || here - start >= segment->p_memsz) continue;
        append(path, object->dlpi_name);
        while (path->length && path->text[path->length - 1] != '/') path->length--;
        return 1;
    }
    return 0;
}

static void load(const char *path) {
    if (dlopen) {
        // Nobody is to be told later of an error that was none of his.
        if (!dlopen(path, NOW) && dlerror) dlerror(), dlerror();
    } else {
        __libc_dlopen_mode(path, NOW | FROM_LIBC);
    }
}

// glibc calls constructors with the arguments of main; other loaders do not, so they are looked at only after it is known.
__attribute__((constructor)) static void start(int count, char **arguments, char **environment) {
    (void)count, (void)arguments;
    enum libc libc = libc_here();
    if (libc == UNKNOWN) return;
    // A program's first look at errno finds 0.
    int *error = __errno_location ? __errno_location() : NULL;
    int before = error ? *error : 0;
    char **variables = libc == GLIBC ? environment : &environ ? environ : NULL;
    const char *disabled = variable(variables, "HASTEN_DISABLE=");
    // `hasten run` has looked at the program already.
    const char *chosen = variable(variables, "HASTEN_PRELOAD=");
    struct path path;
    path.length = 0;
    dl_iterate_phdr(own_directory, &path);
    // Without a slash, dlopen would look for a library of that name anywhere.
    size_t directory = path.length;
    if (directory && libc == MUSL) append(&path, "musl/");
    size_t folder = path.length;
    for (size_t i = 0; directory && i < sizeof ACCELERATORS / sizeof *ACCELERATORS; i++) {
        if (is_disabled(disabled, ACCELERATORS[i].name)) continue;
        if (libc == MUSL && !ACCELERATORS[i].is_for_musl) continue;
        if (chosen ? !is_chosen(chosen, ACCELERATORS[i].name) : !is_wanted(i, variables)) continue;
        path.length = folder;
        append(&path, "libhasten_");
        append(&path, ACCELERATORS[i].name);
        append(&path, ".so");
        load(path.text);
    }
    if (error) *error = before;
}
