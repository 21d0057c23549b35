/* export.h - exports the network of a run to other programs. SPDX-License-Identifier: MIT
 *
 * No export needs the run's data. Output appears complete or not at all. */
#ifndef TRAIN_EXPORT_H
#define TRAIN_EXPORT_H

#include "base/status.h"

typedef struct export_request {
    const char *run, *which; /* which checkpoint: last, best or a step */
    int ema;
    const berlu_log *log; /* warnings; may be NULL */
} export_request;

/* Writes an ONNX file (models/onnx.h) with the metadata of a checkpoint. */
berlu_status export_onnx(const export_request *r, const char *file, int functions);

/* Writes a folder that timm.create_model("local-dir:FOLDER", pretrained=True) loads; it must not
 * exist. */
berlu_status export_timm(const export_request *r, const char *folder);

#endif
