/* get.h - a published set: downloaded, checked, unpacked. SPDX-License-Identifier: MIT */
#ifndef DATA_GET_H
#define DATA_GET_H

#include "data/cifar_layout.h"
#include "data/download.h"

/* Leaves FOLDER/<the set's folder> in place, whole and checked, or not at all: nothing is done when it is right already, an
 * archive that is there is used. A set whose archive has the right hash and whose content is wrong is set aside as
 * FOLDER/<the set's folder>.damaged. `from` gives url, sha256, progress and stop; its url and sha256 may be NULL for
 * the published ones. The archive is removed afterwards unless keep_archive. */
berlu_status data_get(const cifar_layout *layout, const char *folder, const download *from, int keep_archive);

#endif
