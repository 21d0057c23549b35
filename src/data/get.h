/* get.h - downloads, verifies and unpacks a published set. SPDX-License-Identifier: MIT */
#ifndef DATA_GET_H
#define DATA_GET_H

#include "data/cifar_layout.h"
#include "data/download.h"

/* Installs FOLDER/<the set's folder> atomically and verified: does nothing when it is already
 * complete, and uses an archive that is present. A set whose archive has the right hash but whose
 * content is wrong is kept as FOLDER/<the set's folder>.damaged. `from` gives url or file, sha256,
 * progress and stop; url and sha256 may be NULL for the published ones. The archive is removed
 * afterwards unless keep_archive; a file of the caller stays. */
berlu_status data_get(const cifar_layout *layout, const char *folder, const download *from, int keep_archive);

#endif
