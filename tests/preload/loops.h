/*
 * What a seed says about a server and its clients.
 *
 * Every habit has a name and a probability. The list of habits that a run may
 * be given, such as "-vfork,+move" or "-,+threads,~vfork", leaves some out (-),
 * or all that it does not name, makes others certain (+), or as likely as ever
 * (~): to make a failing schedule smaller, or to play one habit alone. It does
 * not change what the seed says about the other habits.
 */
#ifndef HASTEN_TEST_LOOPS_H
#define HASTEN_TEST_LOOPS_H

#include "common.h"
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

enum { MOST_THREADS = 4, MOST_CONNECTIONS = 4096, ROUNDS = 2, PATIENCE_MS = 8000 };

struct chance {
    uint64_t state;
};

static const char *habits = "";

/* Every habit that has a name, and whether this schedule has it: they are listed once, before there are threads. */
enum { MOST_HABITS = 128 };
struct listed_habit {
    const char *name;
    bool drawn, inside;
    _Atomic bool played;
};
static struct listed_habit listed_habits[MOST_HABITS];
static bool lists_habits;

static struct listed_habit *habit_named(const char *name) {
    int i = 0;
    while (listed_habits[i].name != NULL && strcmp(listed_habits[i].name, name) != 0) i++;
    CHECK(i < MOST_HABITS - 1);
    return &listed_habits[i];
}

static void list_habit(const char *name, bool drawn, bool inside) {
    if (!lists_habits) return;
    struct listed_habit *habit = habit_named(name);
    habit->name = name;
    habit->drawn |= drawn;
    habit->inside |= inside;
}

static uint32_t draw(struct chance *chance, uint32_t below) {
    uint64_t z = chance->state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (uint32_t)((z ^ (z >> 31)) >> 32) % below;
}

/* Whether the list of habits that this run was given has this word. */
static bool listed(char sign, const char *name) {
    size_t length = strlen(name);
    for (const char *word = habits; word != NULL; word = strchr(word, ',')) {
        word += *word == ',';
        if (*word == sign && strcspn(word + 1, ",") == length && strncmp(word + 1, name, length) == 0) return true;
    }
    return false;
}

static bool decide(struct chance *chance, const char *name, uint32_t percent) {
    bool drawn = draw(chance, 100) < percent;
    if (listed('+', name) || (drawn && listed('~', name))) return true;
    return drawn && !listed('-', name) && !listed('-', "");
}

static bool has(struct chance *chance, const char *name, uint32_t percent) {
    bool decided = decide(chance, name, percent);
    list_habit(name, decided, false);
    return decided;
}

/* A habit that shows in the middle of a handshake, if that ever waits: it counts when it has been played. */
static bool has_inside(struct chance *chance, const char *name, uint32_t percent) {
    bool decided = decide(chance, name, percent);
    list_habit(name, decided, true);
    return decided;
}

static void played(const char *name) { habit_named(name)->played = true; }

/* How a thread waits for events. */
enum waiting { WAITS, PWAITS, PWAITS2, POLLS, PPOLLS, SELECTS, PSELECTS, SLEEPS, MIXES };

struct plan {
    uint64_t seed;
    int threads, connections, nesting[MOST_THREADS], max_events[MOST_THREADS];
    enum waiting waiting[MOST_THREADS];
    size_t stacks;      /* of threads */
    bool pool;          /* the first thread waits, the others work on what it hands out */
    bool own_listeners; /* each thread accepts, or the first for all */
    bool succession;    /* a thread ends after some turns, and another goes on with its loop */
    bool quiet;         /* no callbacks behind the point where handshakes are suspended: those keep them from it */
    int warm;           /* plain handshakes that come first, one for each thread: it is trusted from then on */
    bool ecdsa, second_context, hello_retry, no_tickets, asks_for_certificate, old_only;
    bool informs, chains, messages, logs_keys, selects_protocol, certificates, retries, tickets, verifies, deep, signs;
};

/* Handshakes are suspended only by a thread that sleeps in epoll. */
static enum waiting waiting_of(struct chance *chance) {
    static const struct {
        const char *name;
        int percent;
    } all[] = {{"pwait", 9}, {"pwait2", 9}, {"poll", 4}, {"ppoll", 4}, {"select", 4}, {"pselect", 4}, {"sleep", 4}, {"mix", 9}};
    for (int i = 0; i < 8; i++) {
        if (has(chance, all[i].name, all[i].percent)) return PWAITS + i;
    }
    return WAITS;
}

static bool calls_back(struct chance *chance, const struct plan *plan, const char *name, uint32_t percent) {
    return has(chance, name, plan->quiet ? 0 : percent);
}

static struct plan plan_of(uint64_t seed, int connections) {
    struct chance c = {seed * 2 + 1};
    struct plan plan = {.seed = seed, .connections = connections};
    plan.threads = has(&c, "threads", 60) ? 2 + draw(&c, MOST_THREADS - 1) : 1;
    bool lists = lists_habits;
    for (int i = 0; i < MOST_THREADS; i++) {
        lists_habits = lists && i < plan.threads;
        plan.waiting[i] = waiting_of(&c);
        plan.nesting[i] = has(&c, "nested", 30) ? 1 + draw(&c, 2) : 0;
        plan.max_events[i] = has(&c, "small-batches", 20) ? 1 : 32;
    }
    lists_habits = lists;
    plan.stacks = has(&c, "small-stacks", 30) ? 256 << 10 : 2 << 20;
    plan.pool = has(&c, "pool", 10) && plan.threads > 1;
    plan.own_listeners = has(&c, "own-listeners", 50) && !plan.pool;
    plan.succession = has(&c, "succession", 15) && !plan.pool;
    plan.quiet = has(&c, "quiet", 85);
    plan.warm = has(&c, "warm", 80) ? plan.threads : 0;
    plan.ecdsa = has(&c, "ecdsa", 60);
    plan.second_context = has(&c, "second-context", 30);
    plan.hello_retry = has(&c, "hello-retry", 10);
    plan.no_tickets = has(&c, "no-tickets", 20);
    plan.asks_for_certificate = has(&c, "client-certificates", 30);
    plan.old_only = has(&c, "tls-1.2", 10);
    plan.informs = calls_back(&c, &plan, "info", 40);
    plan.chains = calls_back(&c, &plan, "info-chain", 30);
    plan.messages = calls_back(&c, &plan, "msg", 30);
    plan.logs_keys = calls_back(&c, &plan, "keylog", 30);
    plan.selects_protocol = has(&c, "alpn", 40);
    plan.certificates = has(&c, "cert-callback", 30);
    plan.retries = has(&c, "retry", 20);
    plan.tickets = calls_back(&c, &plan, "ticket-callback", 15);
    plan.verifies = calls_back(&c, &plan, "verify-callback", 50);
    plan.deep = has(&c, "deep", 30);
    plan.signs = has(&c, "sign", 15);
    return plan;
}

/* What happens after a call of the handshake that has to wait. */
enum interlude {
    NOTHING, SLEEP, VFORK, FORK, FORK_AND_FREE, THREAD, AWAIT_READ, AWAIT_POLL, AWAIT_SELECT, AWAIT_CONDITION, AWAIT_JOIN,
    PROVIDER, REENTER
};
enum in_place { NOWHERE, IN_POLL, IN_PPOLL, IN_SELECT, IN_READ };
enum finish { BY_HANDSHAKE, BY_ACCEPT, BY_READ, BY_PEEK, BY_WRITE };
enum leaving { STAYS, LEAVES_AT_HELLO, RESETS_AT_HELLO, LEAVES_INSIDE, LEAVES_AFTER };

struct habit {
    /* The server's. */
    uint32_t trigger;
    int depth, wait_of_interlude, wait_of_move, wait_in_place, target, recursion;
    bool late, drops, drops_elsewhere, close_first, hasty, moves, moves_by_queue;
    enum interlude interlude;
    enum in_place in_place;
    enum finish finish;
    /* The client's. */
    enum leaving leaving;
    bool old, resumes, has_certificate, splits, slow, second_name;
    int group;
};

static const struct {
    const char *name;
    int percent;
} interludes[] = {[SLEEP] = {"nap", 4}, {"vfork", 3}, {"fork", 2}, {"fork-and-free", 2}, {"thread", 2}, {"await-read", 3},
                  {"await-poll", 3}, {"await-select", 3}, {"await-condition", 3}, {"await-join", 3}, {"provider", 1},
                  {"reenter", 5}};

static enum interlude interlude_of(struct chance *chance) {
    for (int i = SLEEP; i <= REENTER; i++) {
        if (has_inside(chance, interludes[i].name, interludes[i].percent)) return i;
    }
    return NOTHING;
}

static const char *const places[] = {[IN_POLL] = "in-poll", "in-ppoll", "in-select", "in-read"};

/* Of all rounds, and those that come before the first. */
static int all_connections(const struct plan *plan) { return ROUNDS * plan->connections + plan->warm; }

static struct habit habit_of(const struct plan *plan, int index) {
    if (index >= ROUNDS * plan->connections) return (struct habit){.trigger = plan->pool ? EPOLLONESHOT : 0};
    struct chance c = {(plan->seed << 20) + index * 7919 + 3};
    struct habit habit = {.interlude = interlude_of(&c)};
    habit.trigger = has(&c, "edge", 30) ? EPOLLET : 0;
    if (has(&c, "oneshot", 20) || plan->pool) habit.trigger |= EPOLLONESHOT;
    habit.depth = draw(&c, 3);
    habit.late = has(&c, "late", 20);
    habit.wait_of_interlude = 1 + draw(&c, 2);
    habit.wait_of_move = 1 + draw(&c, 2);
    habit.wait_in_place = 1 + draw(&c, 2);
    habit.target = draw(&c, plan->threads);
    habit.recursion = has(&c, "recursion", 50) ? draw(&c, 24) : 0;
    habit.drops = has_inside(&c, "drop", 4);
    habit.drops_elsewhere = has_inside(&c, "drop-elsewhere", 40);
    habit.close_first = has(&c, "close-first", 20);
    habit.hasty = has(&c, "hasty", 40);
    habit.moves = has_inside(&c, "move", 20) && !plan->pool;
    habit.moves_by_queue = has_inside(&c, "move-by-queue", 40);
    for (int i = IN_POLL; i <= IN_READ; i++) {
        if (has_inside(&c, places[i], 4)) habit.in_place = i;
    }
    static const char *ways[] = {"accept", "by-read", "by-peek", "by-write"};
    for (int i = 0; i < 4; i++) {
        if (has(&c, ways[i], 12)) habit.finish = BY_ACCEPT + i;
    }
    static const char *leavings[] = {"leave-at-hello", "reset-at-hello", "leave-inside", "leave-after"};
    for (int i = 0; i < 4; i++) {
        if (has(&c, leavings[i], 3)) habit.leaving = LEAVES_AT_HELLO + i;
    }
    habit.old = has(&c, "old", 40) || plan->old_only;
    /* What a server that keeps sessions itself still has depends on time. */
    habit.resumes = has(&c, "resume", 40) && !plan->no_tickets;
    habit.has_certificate = has(&c, "certificate", 60);
    /* Whoever waits for the client's answer must have had its whole question. */
    bool awaits = habit.interlude >= AWAIT_READ && habit.interlude <= AWAIT_JOIN;
    habit.splits = has(&c, "split", 8) && !awaits;
    habit.slow = has(&c, "slow", 15);
    habit.second_name = has(&c, "second-name", 50);
    /* OpenSSL takes ten times as long for P-384 as for the others. */
    static const int groups[] = {0, 0, 0, 1, 1, 2, 3, 3};
    habit.group = groups[draw(&c, 8)];
    if (habit.drops) habit.leaving = STAYS;
    if (awaits && habit.leaving != LEAVES_AFTER) habit.leaving = STAYS;
    return habit;
}

enum verdict { PENDING, SERVED, LOST, DROPPED };
enum opinion { UNDECIDED, ANSWERED, LEFT, REFUSED, SILENCE };

/* What became of a connection; the parts of a text are those that must not depend on time. */
struct outcome {
    _Atomic int verdict, opinion, welcomed;
    int version, resumed, group, alpn, peer_certificate, keys_logged, first_events, second_events;
    uint64_t states, messages;
};

/* Between the server and its clients. */
struct shared {
    struct outcome outcomes[MOST_CONNECTIONS];
    _Atomic uint16_t index_of_port[65536];
    int progress[MOST_CONNECTIONS][2]; /* a pair of sockets for a server that waits until its client goes on */
    int ports[MOST_THREADS];
};

static struct shared *shared;
static struct plan plan;

#endif
