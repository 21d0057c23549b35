/* loader.c - worker threads that prefetch batches. SPDX-License-Identifier: MIT
 *
 * A ring of slots holds batches in progress, ready ones, and the one borrowed by the caller.
 * Workers take tickets in order, a ticket being a few rows of a batch; a ticket exists only while
 * its batch has a slot, which bounds the memory. The worker that finishes the last rows of a batch
 * also mixes it. One mutex guards the counters below; images are prepared outside of it.
 * loader_plan.c computes a row from its number alone, so it does not matter which worker does. Read
 * on: loader_next(), then worker_run(). */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/signals.h"
#include "base/threads.h"
#include "data/loader_plan.h"

enum { ROWS_PER_TICKET = 8, SLOTS_MOST = 16, SLOTS_DEFAULT = 4, WORKERS_MOST = 256 };

typedef struct slot {
    loader_rows rows;
    size_t left; /* tickets not finished yet */
    int ready;
} slot;

typedef struct worker {
    loader *l;
    pthread_t thread;
    augment_scratch scratch;
} worker;

struct loader {
    loader_plan plan;
    slot slots[SLOTS_MOST];
    size_t slot_count;
    worker *workers;
    int worker_count;
    loader_batch given;
    double waited;

    pthread_mutex_t lock;
    pthread_cond_t work, done; /* tickets are available; a batch is ready, or no worker is busy */
    int stop, paused;
    uint32_t epoch;
    /* Batches are numbered within this rank. */
    size_t batches, held;     /* of this epoch; the first batch whose slot may not be reused */
    size_t next, next_ticket; /* the next ticket: its batch, and its number there */
    size_t give;              /* the next batch that loader_next() returns */
    int busy;                 /* workers that hold a ticket */
    kept_failure failure;     /* the first */
};

/* ---- workers --------------------------------------------------------------------------------- */

static size_t tickets_of(const loader *l, size_t batch)
{
    return (plan_rows(&l->plan, batch) + ROWS_PER_TICKET - 1) / ROWS_PER_TICKET;
}

typedef struct ticket {
    size_t batch, first_row;
    slot *slot;
} ticket;

/* Takes the next ticket; 0 where there is none, or no free slot. Called with the lock held. */
static int ticket_take(loader *l, ticket *t)
{
    if (l->paused || l->failure.status != BERLU_OK || l->next >= l->batches || l->next >= l->held + l->slot_count)
        return 0;
    size_t batch = plan_number(&l->plan, l->next);
    *t = (ticket){batch, l->next_ticket * ROWS_PER_TICKET, &l->slots[l->next % l->slot_count]};
    if (l->next_ticket == 0) {
        t->slot->left = tickets_of(l, batch);
        t->slot->ready = 0;
    }
    if (++l->next_ticket == tickets_of(l, batch)) {
        l->next++;
        l->next_ticket = 0;
    }
    l->busy++;
    return 1;
}

static void ticket_work(worker *w, ticket t)
{
    loader *l = w->l;
    size_t rows = plan_rows(&l->plan, t.batch);
    size_t end = t.first_row + ROWS_PER_TICKET < rows ? t.first_row + ROWS_PER_TICKET : rows;
    berlu_status status = BERLU_OK;
    for (size_t row = t.first_row; row < end && status == BERLU_OK; row++)
        status = plan_fill_row(&l->plan, l->epoch, t.batch, row, &t.slot->rows, &w->scratch);
    pthread_mutex_lock(&l->lock);
    if (l->failure.status == BERLU_OK)
        failure_keep(&l->failure, status);
    assert(t.slot->left > 0 && l->busy > 0);
    int last = --t.slot->left == 0 && l->failure.status == BERLU_OK;
    if (last) {
        pthread_mutex_unlock(&l->lock);
        plan_finish(&l->plan, l->epoch, t.batch, &t.slot->rows);
        pthread_mutex_lock(&l->lock);
        t.slot->ready = 1;
    }
    l->busy--;
    pthread_cond_broadcast(&l->done);
}

/* SCHED_BATCH: a worker that wakes does not preempt the thread that woke it, which has a step to
 * run. */
static void *worker_run(void *context)
{
    worker *w = context;
    loader *l = w->l;
    ticket t;
    (void)sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0}); /* optional */
    pthread_mutex_lock(&l->lock);
    while (!l->stop) {
        if (!ticket_take(l, &t)) {
            pthread_cond_wait(&l->work, &l->lock);
            continue;
        }
        if (l->next - l->give < l->slot_count / 2)
            pthread_cond_signal(&l->work); /* few batches are ready: wake another worker */
        pthread_mutex_unlock(&l->lock);
        ticket_work(w, t); /* returns with the lock held */
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* Starts workers with all signals blocked: the main thread handles them. */
static berlu_status workers_start(loader *l, int count)
{
    sigset_t before;
    signals_block(&before);
    for (int i = 0; i < count; i++) {
        l->workers[i].l = l;
        l->workers[i].scratch.byte_limit = l->plan.image_bytes;
        if (pthread_create(&l->workers[i].thread, NULL, worker_run, &l->workers[i]) != 0)
            break; /* fewer suffice, as long as there is one */
        l->worker_count++;
    }
    signals_restore(&before);
    return l->worker_count > 0 ? BERLU_OK
                               : berlu_fail(BERLU_ERR_MEMORY, "no thread for the data loader could be started");
}

/* ---- opening and closing --------------------------------------------------------------------- */

/* Divides the budget between batches and the buffers of one decoded image per worker. */
static berlu_status budget_share(loader *l, size_t budget, int workers)
{
    size_t slot_bytes = plan_slot_bytes(&l->plan);
    l->slot_count = SLOTS_DEFAULT;
    if (budget) {
        size_t least = (size_t)workers << 20, spare = budget > least ? budget - least : 0;
        l->slot_count = (spare < budget / 2 ? spare : budget / 2) / slot_bytes;
        l->slot_count = l->slot_count < 2 ? 2 : l->slot_count > SLOTS_MOST ? SLOTS_MOST : l->slot_count;
        size_t taken = l->slot_count * slot_bytes;
        if (taken > spare)
            return berlu_fail(BERLU_ERR_ARG,
                              "a memory budget of %zu bytes is too small for two batches of %zu bytes and %d workers; "
                              "give at least %zu",
                              budget, slot_bytes, workers, 2 * slot_bytes + least);
        l->plan.image_bytes = (budget - taken) / (size_t)workers / 4; /* file, image, its copy, its resize */
    }
    return BERLU_OK;
}

static berlu_status slots_make(loader *l)
{
    for (size_t i = 0; i < l->slot_count; i++)
        TRY(plan_rows_make(&l->plan, &l->slots[i].rows));
    return BERLU_OK;
}

berlu_status loader_open(loader **out, data_source *source, const loader_options *options)
{
    loader *l = calloc(1, sizeof *l);
    if (!l)
        return berlu_fail_memory(sizeof *l, "the data loader");
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->work, NULL);
    pthread_cond_init(&l->done, NULL);
    l->paused = 1;
    int workers = options->workers > 0 ? options->workers : threads_default();
    workers = workers > WORKERS_MOST ? WORKERS_MOST : workers;
    berlu_status status;
    TRY_DONE(loader_plan_make(&l->plan, source, options));
    if (options->draws)
        l->slot_count = 1;
    else
        TRY_DONE(budget_share(l, options->budget, workers));
    TRY_DONE(slots_make(l));
    if (!options->draws) {
        l->workers = calloc((size_t)workers, sizeof *l->workers);
        TRY_DONE(l->workers ? workers_start(l, workers)
                            : berlu_fail_memory((size_t)workers * sizeof *l->workers, "the data loader"));
    }
    *out = l;
    return BERLU_OK;
done:
    loader_close(l);
    return status;
}

void loader_close(loader *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->stop = 1;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->worker_count; i++) {
        pthread_join(l->workers[i].thread, NULL);
        augment_scratch_free(&l->workers[i].scratch);
    }
    free(l->workers);
    for (size_t i = 0; i < l->slot_count; i++)
        plan_rows_free(&l->slots[i].rows);
    pthread_cond_destroy(&l->done);
    pthread_cond_destroy(&l->work);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

int loader_drawable(data_source *source, const loader_options *options)
{
    loader_plan p;
    return loader_plan_make(&p, source, options) == BERLU_OK && augment_only_moves(&p.augment, data_describe(source));
}

const float *loader_levels(const loader *l)
{
    return l->plan.augment.levels.table[0];
}

size_t loader_images(const loader *l)
{
    return l->plan.samples;
}

size_t loader_batches(const loader *l)
{
    return l->plan.batches;
}

size_t loader_bytes(const loader *l)
{
    return l->slot_count * plan_slot_bytes(&l->plan);
}

double loader_waited(const loader *l)
{
    return l->waited;
}

uint64_t loader_index_at(const loader *l, uint32_t epoch, uint64_t position)
{
    return plan_index(&l->plan, epoch, position, 0);
}

/* ---- use ------------------------------------------------------------------------------------- */

berlu_status loader_start(loader *l, uint32_t epoch, size_t first_batch)
{
    if (first_batch > l->plan.batches)
        return berlu_fail(BERLU_ERR_ARG, "batch %zu of an epoch of %zu", first_batch, l->plan.batches);
    pthread_mutex_lock(&l->lock);
    l->paused = 1;
    while (l->busy > 0)
        pthread_cond_wait(&l->done, &l->lock);
    for (size_t i = 0; i < l->slot_count; i++)
        l->slots[i].ready = 0;
    l->epoch = epoch;
    l->batches = plan_own(&l->plan, l->plan.batches);
    l->held = l->next = l->give = plan_own(&l->plan, first_batch);
    l->next_ticket = 0;
    l->failure.status = BERLU_OK;
    l->paused = 0;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
    return BERLU_OK;
}

static int given_ready(const loader *l)
{
    const slot *s = &l->slots[l->give % l->slot_count];
    return s->ready && s->rows.number == plan_number(&l->plan, l->give);
}

/* Waits for the next batch or a failure. Called with the lock held. */
static void batch_wait(loader *l)
{
    double began = clock_seconds();
    pthread_cond_signal(&l->work);
    while (!given_ready(l) && l->failure.status == BERLU_OK)
        pthread_cond_wait(&l->done, &l->lock);
    l->waited += clock_seconds() - began;
}

/* Draws are cheap: they are computed on the calling thread. */
static void draws_next(loader *l, const loader_batch **batch)
{
    if (l->give >= l->batches)
        return;
    loader_rows *rows = &l->slots[0].rows;
    plan_draw(&l->plan, l->epoch, plan_number(&l->plan, l->give++), rows);
    plan_show(&l->plan, rows, &l->given);
    *batch = &l->given;
}

berlu_status loader_next(loader *l, const loader_batch **batch)
{
    *batch = NULL;
    if (l->plan.o.draws) {
        draws_next(l, batch);
        return BERLU_OK;
    }
    berlu_status status = BERLU_OK;
    pthread_mutex_lock(&l->lock);
    l->held = l->give; /* the previous batch may be reused */
    int over = l->give >= l->batches, low = l->next - l->give <= l->slot_count / 2;
    if (!over && !given_ready(l) && l->failure.status == BERLU_OK)
        batch_wait(l);
    if (!over && given_ready(l)) {
        plan_show(&l->plan, &l->slots[l->give++ % l->slot_count].rows, &l->given);
        *batch = &l->given;
    } else if (!over) {
        status = failure_report(&l->failure);
    }
    pthread_mutex_unlock(&l->lock);
    if (low) /* one worker refills all free slots; waking it per batch, or under the lock, costs more */
        pthread_cond_signal(&l->work);
    return status;
}
