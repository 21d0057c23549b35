/* export.h - the network of a run for other programs. SPDX-License-Identifier: MIT
 *
 * Neither needs the run's data. What is written appears whole or not at all. */
#ifndef TRAIN_EXPORT_H
#define TRAIN_EXPORT_H

#include "base/status.h"

typedef struct export_request {
    const char *run, *which; /* which checkpoint: last, best or a step */
    int ema;
    const berlu_log *log; /* warnings; may be NULL */
} export_request;

/* An ONNX file (models/onnx.h); the metadata names what a checkpoint's does. */
berlu_status export_onnx(const export_request *r, const char *file, int functions);

/* A folder that timm.create_model("local-dir:FOLDER", pretrained=True) loads; it must not be
 * there. */
berlu_status export_timm(const export_request *r, const char *folder);

#endif
