/* libdlb.so with a queue in memory: one device, any number of domains. */
#include "control.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct domain_arguments {
    uint32_t queues, ports, directed_ports, event_states, sequence_slots[2], credits[4];
    uint64_t core_mask[2];
};

struct queue_arguments {
    uint32_t sequence_numbers, lock_compression;
};

struct port_arguments {
    uint32_t pools[2];
    uint16_t depth;
    uint32_t event_states, class;
};

struct event {
    uint64_t data;
    uint16_t data_16;
    uint8_t queue, schedule;
    uint16_t flow;
    uint8_t flags[2];
};

_Static_assert(sizeof(struct domain_arguments) == 56, "dlb_create_sched_domain_t");
_Static_assert(sizeof(struct port_arguments) == 20, "dlb_create_port_t");
_Static_assert(sizeof(struct event) == 16, "dlb_event_t");

enum { CAPACITY = 256, DOMAINS = 4096, PORTS = 64, COMBINED_CREDITS = 1 << 4 };

struct domain {
    struct event events[CAPACITY];
    uint32_t first, waiting, credits, generation;
    int has_alerts, is_started, ports;
    pthread_mutex_t lock;
};

struct port {
    struct domain *domain;
    int is_linked;
};

static struct domain *domains[DOMAINS];
static _Atomic int last;

SIMULATED

static int refuses(void)
{
    struct block *block = control(DLB);
    while (block->fault == HANG_INIT)
        sleep_milliseconds(5);
    if (block->fault != INIT_FAILURE && block->fault != GONE)
        return 0;
    count_fault(block);
    errno = ENOENT;
    return 1;
}

API int dlb_open(int device, void **handle)
{
    if (device != 0 || refuses())
        return -1;
    *handle = control(DLB);
    return 0;
}

API int dlb_close(void *handle)
{
    return handle == control(DLB) ? 0 : -1;
}

API int dlb_get_dev_capabilities(void *handle, uint64_t *capabilities)
{
    (void)handle;
    *capabilities = COMBINED_CREDITS;
    return 0;
}

API int dlb_create_sched_domain(void *handle, struct domain_arguments *arguments)
{
    struct block *block = control(DLB);
    (void)handle;
    if (block->fault == NO_INSTANCE || arguments->queues != 1 || arguments->ports < 2 || arguments->credits[1] != 1) {
        count_fault(block);
        errno = EINVAL;
        return -1;
    }
    int number = last++;
    struct domain *domain = calloc(1, sizeof *domain);
    domain->generation = block->generation;
    pthread_mutex_init(&domain->lock, NULL);
    domains[number % DOMAINS] = domain;
    block->opened++;
    return number;
}

API void *dlb_attach_sched_domain(void *handle, int number)
{
    (void)handle;
    return domains[number % DOMAINS];
}

API int dlb_detach_sched_domain(struct domain *domain)
{
    return domain->ports == 0 ? 0 : -1;
}

API int dlb_reset_sched_domain(void *handle, int number)
{
    (void)handle;
    return domains[number % DOMAINS]->ports == 0 ? 0 : -1;
}

API int dlb_create_credit_pool(struct domain *domain, int credits)
{
    domain->credits = (uint32_t)credits;
    return 0;
}

API int dlb_create_ldb_credit_pool(struct domain *domain, int credits)
{
    (void)domain, (void)credits;
    return -1;
}

API int dlb_create_dir_credit_pool(struct domain *domain, int credits)
{
    (void)domain, (void)credits;
    return -1;
}

API int dlb_create_ldb_queue(struct domain *domain, struct queue_arguments *arguments)
{
    (void)domain;
    return arguments->sequence_numbers == 0 ? 3 : -1;
}

API int dlb_create_ldb_port(struct domain *domain, struct port_arguments *arguments)
{
    int is_power = arguments->depth >= 8 && (arguments->depth & (arguments->depth - 1)) == 0;
    return is_power && arguments->event_states >= arguments->depth && domain->ports < PORTS ? domain->ports : -1;
}

API void *dlb_attach_ldb_port(struct domain *domain, int number)
{
    struct port *port = calloc(1, sizeof *port);
    (void)number;
    port->domain = domain;
    domain->ports++;
    return port;
}

API int dlb_detach_port(struct port *port)
{
    port->domain->ports--;
    return 0;
}

API int dlb_link_queue(struct port *port, int queue, int priority)
{
    port->is_linked = queue == 3 && priority >= 0 && priority <= 8;
    return port->is_linked ? 0 : -1;
}

API int dlb_launch_domain_alert_thread(struct domain *domain, void *callback, void *argument)
{
    (void)callback, (void)argument;
    domain->has_alerts = 1;
    return 0;
}

API int dlb_start_sched_domain(struct domain *domain)
{
    domain->is_started = domain->has_alerts;
    return domain->is_started ? 0 : -1;
}

static int is_dead(struct domain *domain, struct block *block)
{
    int dead = !domain->is_started || domain->generation != block->generation || block->fault == GONE ||
               block->fault == ABORT || block->fault == RESTARTING;
    if (dead) {
        count_fault(block);
        errno = EACCES;
    }
    return dead;
}

API int dlb_send(struct port *port, uint32_t count, struct event *events)
{
    struct block *block = control(DLB);
    struct domain *domain = port->domain;
    block->operations++;
    if (count != 1 || events->queue != 3 || events->schedule != 1 || is_dead(domain, block))
        return -1;
    if (block->fault == QUEUE_FULL) {
        count_fault(block);
        return 0;
    }
    pthread_mutex_lock(&domain->lock);
    int sent = domain->waiting < domain->credits && domain->waiting < CAPACITY;
    /* PARTIAL: every message is said to have been sent, and is not. */
    if (sent && block->fault != PARTIAL) {
        struct event *event = &domain->events[(domain->first + domain->waiting++) % CAPACITY];
        *event = *events;
        if (block->fault == WRONG_BYTES) {
            count_fault(block);
            event->data ^= 0x4100000000000041u;
        }
        /* TOO_LONG: the device marks what it could not carry whole. */
        if (block->fault == TOO_LONG) {
            count_fault(block);
            event->flags[1] |= 1 << 5;
        }
    }
    if (block->fault == PARTIAL)
        count_fault(block);
    pthread_mutex_unlock(&domain->lock);
    return sent;
}

API int dlb_recv(struct port *port, uint32_t most, bool wait, struct event *events)
{
    struct block *block = control(DLB);
    struct domain *domain = port->domain;
    int received = 0;
    if (most != 1 || wait || !port->is_linked || is_dead(domain, block))
        return -1;
    if (block->fault == HANG)
        return 0;
    pthread_mutex_lock(&domain->lock);
    if (domain->waiting > 0) {
        *events = domain->events[domain->first];
        domain->first = (domain->first + 1) % CAPACITY;
        domain->waiting--;
        received = 1;
    }
    pthread_mutex_unlock(&domain->lock);
    return received;
}

API int dlb_release(struct port *port, uint32_t count)
{
    (void)port;
    return (int)count;
}
