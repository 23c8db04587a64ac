// Four threads change each other's objects by every function, and look at each byte pattern; a child allocates, too.
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
enum { SLOTS = 4096, THREADS = 4, ROUNDS = 200000 };
static struct { unsigned char *p; size_t n; unsigned char v; } shared[THREADS][SLOTS];
static pthread_mutex_t lock[THREADS];
static void check(unsigned char *p, size_t n, unsigned char v) {
    for (size_t i = 0; i < n; i += n > 256 ? 61 : 1) if (p[i] != v) { fprintf(stderr, "damaged %p+%zu\n", p, i); _exit(9); }
    if (n && p[n - 1] != v) _exit(9);
}
static void *run(void *a) {
    uint64_t s = (uintptr_t)a * 77777 + 12345;
    for (int r = 0; r < ROUNDS; r++) {
        s = s * 6364136223846793005ull + 1442695040888963407ull;
        unsigned x = s >> 33; int t = (x >> 3) % THREADS; int i = (x >> 7) % SLOTS;
        size_t n = (x >> 19) % 8 == 0 ? x % 60000 : x % 1500;
        pthread_mutex_lock(&lock[t]);
        unsigned char *p = shared[t][i].p; size_t old = shared[t][i].n;
        if (p) check(p, old, shared[t][i].v);
        unsigned char v = x >> 5;
        switch (x % 6) {
        case 0: free(p); p = malloc(n); break;
        case 1: free(p); p = calloc(1, n); if (p) check(p, n, 0); break;
        case 2: { unsigned char ov = shared[t][i].v; if (!n) n = 1; p = realloc(p, n); if (shared[t][i].p) check(p, old < n ? old : n, ov); break; }
        case 3: free(p); if (posix_memalign((void **)&p, 16u << (x % 9), n)) _exit(8); if ((uintptr_t)p % (16u << (x % 9))) _exit(7); break;
        case 4: free(p); p = memalign(48, n); break;
        default: free(p); p = aligned_alloc(4096, n); if ((uintptr_t)p % 4096) _exit(7);
        }
        if (!p || malloc_usable_size(p) < n) _exit(6);
        memset(p, v, n); shared[t][i].p = p; shared[t][i].n = n; shared[t][i].v = v;
        pthread_mutex_unlock(&lock[t]);
        if (r % 50000 == 7) { pid_t c = fork(); if (!c) { for (int k = 0; k < 2000; k++) { void *q = malloc(k * 9); free(q); } _exit(0); } int st; waitpid(c, &st, 0); if (st) _exit(5); }
    }
    return 0;
}
int main(void) {
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_mutex_init(&lock[i], 0);
    for (int k = 0; k < 2; k++) {
        for (long i = 0; i < THREADS; i++) pthread_create(&t[i], 0, run, (void *)(i + 9 * k));
        for (int i = 0; i < THREADS; i++) pthread_join(t[i], 0);
    }
puts("ok"); return 0;
}
