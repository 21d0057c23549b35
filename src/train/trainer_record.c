/* trainer_record.c - records initial weights, image order and the loss of every batch
 * (--record-steps). SPDX-License-Identifier: MIT
 *
 * With this record and the settings another program can repeat the run and compare loss by loss
 * (bench/losses_torch.py does so in PyTorch). Results arrive in the order of their batches, and the
 * order of images is a function of the epoch, so counting results suffices to name the images of
 * each. Rows reach the file at the end of an epoch or of the process. */
#include "io/csv.h"
#include "train/checkpoint_files.h"
#include "train/trainer_internal.h"

static const char initial_name[] = "initial.safetensors", steps_name[] = "steps.csv";

berlu_status steps_begin(trainer *t)
{
    static const char *const columns[] = {"step", "epoch", "lr", "loss", "grad_norm", "images"};
    t->steps.on = 1;
    for (size_t i = 0; i < COUNT(columns); i++)
        csv_text(&t->steps.rows, columns[i]);
    csv_end(&t->steps.rows);
    return weights_write(&t->run.folder, initial_name, t->train, ARRAY_WEIGHT, t->facts.list, t->facts.count);
}

void steps_add(trainer *t, const step_result *r, double loss, int ends_update)
{
    steps_record *s = &t->steps;
    size_t rows = (size_t)t->settings.batch;
    if (!s->on)
        return;
    uint64_t epoch = s->batches / t->epoch_batches, batch = s->batches % t->epoch_batches;
    s->batches++;
    csv_int(&s->rows, (long long)s->updates + 1);
    csv_int(&s->rows, (long long)epoch + 1);
    csv_f64(&s->rows, schedule_rate(&t->schedule, s->updates));
    csv_f64(&s->rows, loss);
    if (ends_update)
        csv_f64(&s->rows, r->grad_norm);
    else
        csv_empty(&s->rows);
    s->updates += (uint64_t)ends_update;
    text images = {0};
    for (size_t i = 0; i < rows; i++) /* overfit_batch repeats the first batch */
        text_add(&images, "%s%llu", i ? " " : "",
                 (unsigned long long)loader_index_at(t->batches, (uint32_t)epoch,
                                                     (t->settings.overfit_batch ? 0 : batch * rows) + i));
    csv_text(&s->rows, images.data ? images.data : "");
    s->rows.failed |= images.failed;
    csv_end(&s->rows);
    text_free(&images);
}

berlu_status steps_write(trainer *t)
{
    text *rows = &t->steps.rows;
    berlu_status status = text_status(rows);
    if (status == BERLU_OK && rows->length)
        status = file_append_in(&t->run.folder, steps_name, rows->data, rows->length, 1);
    rows->length = 0;
    return status;
}
