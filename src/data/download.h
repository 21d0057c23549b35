/* download.h - downloads a file, complete and verified. SPDX-License-Identifier: MIT */
#ifndef DATA_DOWNLOAD_H
#define DATA_DOWNLOAD_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/status.h"

typedef struct download {
    const char *url;    /* http or https; redirections are followed */
    const char *file;   /* data_get() only: an archive on this machine, used instead of the url */
    const char *path;   /* destination; PATH.part holds the bytes so far and is resumed by the next call */
    uint64_t bytes;     /* expected length, 0: unknown */
    uint64_t most;      /* refused beyond this where the length is unknown, 0: no bound */
    const char *sha256; /* expected hash, NULL: not checked */
    int tries;          /* connections before giving up, 0: 4; a lost one is resumed */
    void (*progress)(void *context, uint64_t done, uint64_t all); /* all is 0 while unknown; may be NULL */
    void *context;
    const atomic_int *stop; /* becomes non-zero: stop, keep the part (BERLU_ERR_STOPPED); may be NULL */
} download;

/* BERLU_ERR_IO when the network or the disk failed (the part is kept unless it is empty),
 * BERLU_ERR_INPUT when length or hash are wrong (the part is removed), BERLU_ERR_UNSUPPORTED in a
 * build without libcurl. */
berlu_status download_file(const download *d);

#endif
