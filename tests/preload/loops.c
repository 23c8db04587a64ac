/*
 * A TLS server with habits that a seed chooses: threads, event loops in event
 * loops, connections that move, waits in odd places, children, callbacks; and
 * clients with scripts of their own. It prints what became of each connection,
 * how many things happened that must not, and what is left at the end: all of
 * it is the same for every run of a seed, however fast it was.
 *
 * Usage: loops keys DIRECTORY
 *        loops habits DIRECTORY
 *        loops SEED DIRECTORY [CONNECTIONS [HABITS]]
 *        loops series DIRECTORY [CONNECTIONS [HABITS]]
 *
 * A series takes one seed after the other from its input. Each is played by a
 * process of its own, which has everything but the libraries and the keys to
 * itself, so that one that hangs or crashes is one that differs.
 */
#include "loops_client.h"
#include "loops_interludes.h"
#include <dirent.h>
#include <net/if.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>

enum mark { INNER = 1, INNERMOST, WAKE, LISTENER, FIRST };
enum { TURNS_OF_A_THREAD = 25, STUCK_MS = 12000 };

struct loop {
    int number, epfds[3], wake, listener, turns;
    struct chance chance;
    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct connection *queue;
};

static struct loop loops[MOST_THREADS], reaper, work;
static struct connection connections[MOST_CONNECTIONS];
static SSL_CTX *context;
static bool forks, in_series;
static pid_t clients;
static _Atomic bool over, has_reentered;
static _Atomic int running, strangers, errors_left;

static void turn(struct loop *loop, int timeout);

static void push(struct loop *loop, struct connection *connection) {
    pthread_mutex_lock(&loop->lock);
    struct connection **last = &loop->queue;
    while (*last != NULL) last = &(*last)->next;
    connection->next = NULL;
    *last = connection;
    pthread_cond_signal(&loop->filled);
    pthread_mutex_unlock(&loop->lock);
}

static struct connection *pop(struct loop *loop, bool waits) {
    pthread_mutex_lock(&loop->lock);
    while (loop->queue == NULL && waits && !over) pthread_cond_wait(&loop->filled, &loop->lock);
    struct connection *first = loop->queue;
    if (first != NULL) loop->queue = first->next;
    pthread_mutex_unlock(&loop->lock);
    return first;
}

static void wake(struct loop *loop) {
    uint64_t one = 1;
    CHECK(write(loop->wake, &one, sizeof(one)) == sizeof(one));
}

static int home(const struct connection *connection) {
    const struct loop *loop = connection->loop;
    int deepest = plan.nesting[loop->number];
    return loop->epfds[connection->habit.depth < deepest ? connection->habit.depth : deepest];
}

/* The connection may be another thread's at once. */
static void arm(struct connection *connection) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | connection->habit.trigger};
    int operation = connection->registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    event.data.u64 = FIRST + connection->index;
    connection->registered = true;
    CHECK(epoll_ctl(home(connection), operation, connection->fd, &event) == 0);
}

static void disarm(struct connection *connection) {
    if (connection->registered) CHECK(epoll_ctl(home(connection), EPOLL_CTL_DEL, connection->fd, NULL) == 0);
    connection->registered = false;
}

static void end(struct connection *connection, enum verdict verdict) {
    struct outcome *outcome = connection->outcome;
    X509 *certificate = SSL_get1_peer_certificate(connection->ssl);
    outcome->peer_certificate = certificate != NULL;
    X509_free(certificate);
    connection->ended = true;
    /* A child that has the descriptor, too, would keep it in the epoll instance. */
    if (forks) disarm(connection);
    if (connection->habit.close_first) close(connection->fd);
    SSL_free(connection->ssl);
    if (!connection->habit.close_first) close(connection->fd);
    if (verdict == LOST && getenv("LOOPS_TALK") != NULL) ERR_print_errors_fp(stderr);
    ERR_clear_error();
    outcome->verdict = verdict;
}

static int shake(struct connection *connection) {
    char data[4];
    int result;
    bool begins = connection->waits == 0 && connection->index % 2 == 0;
    switch (connection->habit.finish) {
    case BY_HANDSHAKE: return SSL_do_handshake(connection->ssl);
    case BY_PEEK: return begins ? SSL_accept(connection->ssl) : SSL_peek(connection->ssl, data, 4);
    case BY_READ:
        if (begins) break;
        result = SSL_read(connection->ssl, data, 4);
        connection->heard = result == 4;
        return result;
    case BY_WRITE:
        if (begins) break;
        result = SSL_write(connection->ssl, "pong", 4);
        connection->answered = result == 4;
        return result;
    default: break;
    }
    return SSL_accept(connection->ssl);
}

static int act(struct connection *connection) {
    char data[4];
    int result = 1;
    if (connection->stage == SHAKING) return shake(connection);
    if (connection->stage == CLOSING) return SSL_read(connection->ssl, data, 1) > 0 ? -1 : 0;
    if (!connection->heard) result = SSL_read(connection->ssl, data, 4);
    connection->heard |= result == 4;
    if (connection->heard && !connection->answered) result = SSL_write(connection->ssl, "pong", 4);
    connection->answered |= connection->heard && result == 4;
    return result;
}

/* Goes on until the connection is over (1), has to wait (0) or has failed (-1). */
static int attempt(struct connection *connection) {
    for (;;) {
        struct connection *outer = current;
        errors_left += ERR_peek_error() != 0;
        current = connection;
        int result = act(connection);
        bool is_over = result > 0 && connection->stage++ == TALKING && connection->habit.hasty;
        if (is_over) SSL_shutdown(connection->ssl);
        current = outer;
        if (is_over) return 1;
        if (result > 0) continue;
        int error = SSL_get_error(connection->ssl, result);
        if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return 0;
        if (error == SSL_ERROR_WANT_X509_LOOKUP) continue;
        return connection->stage == CLOSING && error == SSL_ERROR_ZERO_RETURN ? 1 : -1;
    }
}

static int finish_in_place(struct connection *connection) {
    bool blocks = connection->habit.in_place == IN_READ;
    int outcome = 0;
    played(places[connection->habit.in_place]);
    if (blocks) set_blocking(connection->fd, true);
    while (outcome == 0 && connection->stage == SHAKING) {
        bool comes = wait_in_place(connection);
        expect(comes, connection, "nothing comes in place");
        outcome = comes ? attempt(connection) : -1;
    }
    if (blocks) set_blocking(connection->fd, false);
    return outcome;
}

static void drop(struct connection *connection) {
    played(connection->habit.drops_elsewhere ? "drop-elsewhere" : "drop");
    if (!connection->habit.drops_elsewhere) return end(connection, DROPPED);
    disarm(connection);
    connection->loop = NULL;
    push(&reaper, connection);
}

static void move(struct connection *connection) {
    bool by_queue = connection->habit.moves_by_queue;
    played(by_queue ? "move-by-queue" : "move");
    disarm(connection);
    connection->moved = true;
    connection->loop = &loops[connection->habit.target];
    if (!by_queue) return arm(connection);
    struct loop *target = connection->loop;
    connection->queued = true;
    push(target, connection);
    wake(target);
}

/* A handshake that has seen something of its client and waits for more; whether it is still ours to go on with. */
static bool pause_inside(struct connection *connection, int *outcome) {
    const struct habit *habit = &connection->habit;
    connection->waits++;
    if (habit->drops) return drop(connection), false;
    if (connection->waits == habit->wait_of_interlude) play(connection, habit->interlude);
    if (connection->waits == habit->wait_in_place && habit->in_place != NOWHERE) *outcome = finish_in_place(connection);
    if (*outcome != 0 || connection->waits != habit->wait_of_move || !habit->moves || connection->moved) return true;
    return move(connection), false;
}

static void handle(struct loop *loop, struct connection *connection) {
    if (connection->ended || connection->queued || (!plan.pool && connection->loop != loop)) {
        /* A turn inside another one may have seen to it, or sent it on. */
        strangers += !has_reentered;
        return;
    }
    int outcome = attempt(connection);
    bool waits = outcome == 0 && connection->stage == SHAKING && BIO_number_read(SSL_get_rbio(connection->ssl)) > 0;
    if (waits && !pause_inside(connection, &outcome)) return;
    if (outcome != 0) return end(connection, outcome > 0 ? SERVED : LOST);
    bool reenters = connection->waits == 1 && connection->habit.interlude == REENTER && !plan.pool;
    if (!connection->registered || connection->habit.trigger & EPOLLONESHOT) arm(connection);
    if (!reenters) return;
    played("reenter");
    has_reentered = true;
    turn(loop, 1);
}

/* From another depth of the stack each time. */
__attribute__((noinline)) static void handle_deeply(struct loop *loop, struct connection *connection, int depth) {
    volatile char room[1 + depth * 97];
    room[0] = depth;
    if (depth > 0) handle_deeply(loop, connection, depth - 1);
    else handle(loop, connection);
    CHECK(room[0] == depth);
}

static void begin(struct loop *loop, struct connection *connection) {
    int depth = plan.stacks > 4 * DEEP ? connection->habit.recursion : 0;
    handle_deeply(loop, connection, depth);
}

static void welcome(struct loop *loop) {
    struct sockaddr_in peer;
    socklen_t length = sizeof(peer);
    int fd;
    while ((fd = accept4(loop->listener, (struct sockaddr *)&peer, &length, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        int index = shared->index_of_port[ntohs(peer.sin_port)] - 1;
        if (index < 0) {
            /* Somebody else's client, who takes this port for another server's. */
            close(fd);
            continue;
        }
        struct connection *connection = &connections[index];
        *connection = (struct connection){.fd = fd, .index = index, .habit = habit_of(&plan, index)};
        connection->outcome = &shared->outcomes[index];
        connection->outcome->welcomed = true;
        connection->loop = plan.own_listeners || plan.pool ? loop : &loops[index % plan.threads];
        connection->ssl = SSL_new(context);
        SSL_set_app_data(connection->ssl, connection);
        SSL_set_accept_state(connection->ssl);
        CHECK(SSL_set_fd(connection->ssl, fd) == 1);
        if (plan.chains) SSL_set_info_callback(connection->ssl, chained);
        if (connection->habit.late && connection->loop == loop) begin(loop, connection);
        else arm(connection);
    }
}

static int wait_for_events(struct loop *loop, struct epoll_event *events, int timeout) {
    int epfd = loop->epfds[0], most = plan.max_events[loop->number];
    struct pollfd waiting = {.fd = epfd, .events = POLLIN};
    struct timespec precise = {.tv_nsec = 20000000}, *limit = timeout < 0 ? NULL : &precise;
    struct timeval coarse = {.tv_usec = 20000};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(epfd, &set);
    enum waiting waiting_now = plan.waiting[loop->number];
    if (waiting_now == MIXES) waiting_now = draw(&loop->chance, MIXES);
    switch (waiting_now) {
    case PWAITS: return epoll_pwait(epfd, events, most, timeout, NULL);
    case PWAITS2: return epoll_pwait2(epfd, events, most, limit, NULL);
    case POLLS: poll(&waiting, 1, timeout); break;
    case PPOLLS: ppoll(&waiting, 1, limit, NULL); break;
    case SELECTS: select(epfd + 1, &set, NULL, NULL, timeout < 0 ? NULL : &coarse); break;
    case PSELECTS: pselect(epfd + 1, &set, NULL, NULL, limit, NULL); break;
    case SLEEPS: usleep(300); break;
    default: return epoll_wait(epfd, events, most, timeout);
    }
    return epoll_wait(epfd, events, most, 0);
}

static void called(struct loop *loop) {
    struct connection *connection;
    uint64_t count;
    CHECK(read(loop->wake, &count, sizeof(count)) == sizeof(count) || errno == EAGAIN);
    while ((connection = pop(loop, false)) != NULL) {
        connection->queued = false;
        arm(connection);
    }
}

static void dispatch(struct loop *loop, const struct epoll_event *event) {
    struct epoll_event events[32];
    uint64_t mark = event->data.u64;
    if (mark >= FIRST && plan.pool) return push(&work, &connections[mark - FIRST]);
    if (mark >= FIRST) return begin(loop, &connections[mark - FIRST]);
    if (mark == WAKE) return called(loop);
    if (mark == LISTENER) return welcome(loop);
    int count = epoll_wait(loop->epfds[mark], events, plan.max_events[loop->number], 0);
    for (int i = 0; i < count; i++) dispatch(loop, &events[i]);
}

static void turn(struct loop *loop, int timeout) {
    struct epoll_event events[32];
    int count = wait_for_events(loop, events, timeout);
    CHECK(count >= 0 || errno == EINTR);
    for (int i = 0; i < count; i++) dispatch(loop, &events[i]);
    loop->turns++;
}

static void start(void *(*run)(void *), void *argument) {
    pthread_attr_t attributes;
    pthread_t thread;
    running++;
    pthread_attr_init(&attributes);
    CHECK(pthread_attr_setstacksize(&attributes, plan.stacks) == 0);
    CHECK(pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0);
    CHECK(pthread_create(&thread, &attributes, run, argument) == 0);
    pthread_attr_destroy(&attributes);
}

static void *serve(void *argument) {
    struct loop *loop = argument;
    while (!over) {
        turn(loop, -1);
        if (!plan.succession || loop->turns % TURNS_OF_A_THREAD != 0) continue;
        start(serve, loop);
        break;
    }
    running--;
    return NULL;
}

static void *serve_pool(void *argument) {
    struct connection *connection;
    (void)argument;
    while ((connection = pop(&work, true)) != NULL) handle(&loops[0], connection);
    running--;
    return NULL;
}

static void *reap(void *argument) {
    struct connection *connection;
    (void)argument;
    while ((connection = pop(&reaper, true)) != NULL) end(connection, DROPPED);
    running--;
    return NULL;
}

static void add(int epfd, int fd, enum mark mark) {
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = mark};
    CHECK(epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event) == 0);
}

static void open_loop(int number) {
    struct loop *loop = &loops[number];
    loop->number = number;
    loop->chance = (struct chance){plan.seed + number};
    loop->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    for (int i = 0; i <= plan.nesting[number]; i++) loop->epfds[i] = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 1; i <= plan.nesting[number]; i++) add(loop->epfds[i - 1], loop->epfds[i], INNER + i - 1);
    add(loop->epfds[0], loop->wake, WAKE);
    if (number > 0 && !plan.own_listeners) return;
    loop->listener = listen_on_loopback(&shared->ports[number]);
    set_blocking(loop->listener, false);
}

static int descriptors(void) {
    DIR *directory = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(directory) != NULL) count++;
    closedir(directory);
    return count;
}

/* How many of a round are over, and of those that come before all rounds. */
static int decided(int round) {
    int count = 0;
    for (int i = 0; i < all_connections(&plan); i++) {
        bool counts = i / plan.connections == round || i >= ROUNDS * plan.connections;
        count += counts && shared->outcomes[i].verdict != PENDING && shared->outcomes[i].opinion != UNDECIDED;
    }
    return count;
}

static bool play_round(int rounds, int round) {
    int before = 0, idle = 0, all = plan.connections + plan.warm;
    CHECK(write(rounds, "r", 1) == 1);
    while (before < all && idle < STUCK_MS) {
        usleep(1000);
        int now = decided(round);
        idle = now == before ? idle + 1 : 0;
        before = now;
    }
    return before == all;
}

static void print_outcomes(void) {
    static const char *verdicts[] = {"hangs", "served", "lost", "dropped"};
    static const char *opinions[] = {"hangs", "answered", "left", "refused", "silence"};
    for (int i = 0; i < all_connections(&plan); i++) {
        const struct outcome *o = &shared->outcomes[i];
        printf("%d: %s, %s", i, verdicts[o->verdict], opinions[o->opinion]);
        if (o->verdict == SERVED && o->opinion == ANSWERED) {
            printf(", version %x, group %x, resumed %d, alpn %d, certificate %d, keys %d, events %d and %d, %llx, %llx", o->version,
                   o->group, o->resumed, o->alpn, o->peer_certificate, o->keys_logged, o->first_events, o->second_events,
                   (unsigned long long)o->states, (unsigned long long)o->messages);
        }
        putchar('\n');
    }
}

static void copy_line(int directory, const char *thread, const char *file) {
    char name[300], text[300];
    snprintf(name, sizeof(name), "%s/%s", thread, file);
    int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    text[length > 0 ? length : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    fprintf(stderr, " %s", text);
    close(fd);
}

/* A schedule that hangs once in ten thousand must say where when it does: each thread's system call and times. */
static void tell_where_it_hangs(void) {
    DIR *threads = opendir("/proc/self/task");
    struct dirent *entry;
    for (int i = 0; i < all_connections(&plan); i++) {
        const struct outcome *o = &shared->outcomes[i];
        const struct connection *c = &connections[i];
        if (o->welcomed && o->verdict == PENDING)
            fprintf(stderr, "%d: loop %d, stage %d, waits %d, registered %d, queued %d\n", i, c->loop != NULL ? c->loop->number : -1,
                    c->stage, c->waits, c->registered, c->queued);
    }
    for (int i = 0; i < plan.threads; i++) fprintf(stderr, "loop %d: %d turns\n", i, loops[i].turns);
    while ((entry = readdir(threads)) != NULL) {
        if (entry->d_name[0] == '.') continue;
        fprintf(stderr, "thread %s:", entry->d_name);
        copy_line(dirfd(threads), entry->d_name, "syscall");
        copy_line(dirfd(threads), entry->d_name, "schedstat");
        fputc('\n', stderr);
    }
    closedir(threads);
}

static void print_rest(bool complete, int kept) {
    printf("descriptors that a round leaves: %d\n", complete ? kept : -1);
    printf("SSL objects left: %d, threads left: %d\n", complete ? living : -1, running);
    printf("callbacks on another stack: %d, outside of a call: %d\n", off_stack, out_of_call);
    printf("waited in vain: %d, events for others: %d, errors left: %d\n", in_vain, strangers, errors_left);
}

/* What this schedule has shown; not compared, as it depends on time how far a handshake gets before it waits. */
static void print_habits(void) {
    fputs("habits:", stdout);
    for (const struct listed_habit *habit = listed_habits; habit->name != NULL; habit++) {
        if (habit->inside ? habit->played : habit->drawn) printf(" %s", habit->name);
    }
    putchar('\n');
}

/* Stays until the test has read the counters, which it is told by a byte in a series. */
__attribute__((noreturn)) static void leave(void) {
    char byte;
    if (!in_series) _exit(finish());
    printf("done %d\n", getpid());
    CHECK(fflush(stdout) == 0 && read(0, &byte, 1) >= 0);
    _exit(0);
}

static void *control(void *argument) {
    int rounds = *(int *)argument, kept = 0;
    bool complete = true;
    for (int round = 0; round < ROUNDS && complete; round++) {
        complete = play_round(rounds, round);
        kept = descriptors() - kept;
    }
    if (!complete) tell_where_it_hangs();
    over = true;
    for (int i = 0; i < plan.threads; i++) wake(&loops[i]);
    for (int i = 0; i < 3000 && running > 0; i++) {
        pthread_cond_broadcast(&work.filled);
        pthread_cond_broadcast(&reaper.filled);
        usleep(1000);
    }
    CHECK(kill(clients, SIGKILL) == 0 && waitpid(clients, NULL, 0) == clients);
    print_outcomes();
    print_rest(complete, kept);
    print_habits();
    leave();
}

static void prepare_shared(void) {
    struct timeval patience = {.tv_sec = PATIENCE_MS / 2000};
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    for (int i = 0; i < ROUNDS * plan.connections; i++) {
        enum interlude interlude = habit_of(&plan, i).interlude;
        forks |= interlude == VFORK || interlude == FORK || interlude == FORK_AND_FREE;
        if (interlude < AWAIT_READ || interlude > AWAIT_JOIN) continue;
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, shared->progress[i]) == 0);
        CHECK(setsockopt(shared->progress[i][0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0);
    }
}

static void prepare_server(void) {
    context = server_contexts();
    pthread_cond_init(&work.filled, NULL);
    for (int i = 0; i < plan.threads; i++) {
        if (loops[i].listener > 0) add(loops[i].epfds[0], loops[i].listener, LISTENER);
    }
}

/* The first thread serves, as it does in most programs, and one that nobody else knows of watches. */
__attribute__((noreturn)) static void play_schedule(uint64_t seed, int count) {
    static int rounds;
    pthread_t controller;
    alarm(100);
    lists_habits = true;
    plan = plan_of(seed, count);
    prepare_shared();
    lists_habits = false;
    for (int i = 0; i < plan.threads; i++) open_loop(i);
    rounds = fork_clients(&clients);
    prepare_server();
    start(reap, NULL);
    for (int i = 1; i < plan.threads; i++) start(plan.pool ? serve_pool : serve, &loops[i]);
    CHECK(pthread_create(&controller, NULL, control, &rounds) == 0);
    running++;
    serve(&loops[0]);
    pthread_join(controller, NULL);
    _exit(1);
}

/* The next number of the input; false at its end. */
static bool read_seed(uint64_t *seed) {
    char text[32] = "";
    for (size_t length = 0; length < sizeof(text) - 1 && read(0, text + length, 1) == 1; length++) {
        if (text[length] != '\n') continue;
        *seed = strtoull(text, NULL, 10);
        return true;
    }
    return false;
}

static int play_series(int count) {
    uint64_t seed;
    int status;
    in_series = true;
    while (read_seed(&seed)) {
        pid_t process = fork();
        CHECK(process >= 0);
        if (process == 0) play_schedule(seed, count);
        CHECK(waitpid(process, &status, 0) == process);
        printf("status %x\nend\n", status);
        CHECK(fflush(stdout) == 0);
    }
    return 0;
}

static int print_all_habits(void) {
    lists_habits = true;
    for (int seed = 0; seed < 100; seed++) {
        plan = plan_of(seed, 20);
        for (int i = 0; i < all_connections(&plan); i++) habit_of(&plan, i);
    }
    for (const struct listed_habit *habit = listed_habits; habit->name != NULL; habit++) puts(habit->name);
    return finish();
}

/*
 * A network of its own, where the system allows it: thousands of schedules leave more connections in TIME_WAIT than there
 * are ports for clients, and whoever else wants one would go without.
 */
static void leave_the_network(void) {
    struct ifreq loopback = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    if (unshare(CLONE_NEWNET) != 0) return;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &loopback) == 0);
    close(fd);
}

int main(int argc, char **argv) {
    CHECK(argc > 2);
    signal(SIGPIPE, SIG_IGN);
    if (is(argv[1], "keys")) return make_keys(argv[2]);
    if (is(argv[1], "habits")) return print_all_habits();
    int count = argc > 3 ? atoi(argv[3]) : 24;
    CHECK(count > 0 && count * ROUNDS + MOST_THREADS <= MOST_CONNECTIONS);
    if (argc > 4) habits = argv[4];
    load_keys(argv[2]);
    leave_the_network();
    if (is(argv[1], "series")) return play_series(count);
    play_schedule(strtoull(argv[1], NULL, 10), count);
}
