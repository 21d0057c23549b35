/* smooth_picture.h - a smoothed function as a picture. SPDX-License-Identifier: MIT */
#ifndef CLI_SMOOTH_PICTURE_H
#define CLI_SMOOTH_PICTURE_H

#include <berlu/smooth.h>

/* Function with control polygon above, slope below; where the transitions are narrow, a closer look beside both. */
berlu_status smooth_picture_save(const berlu_smooth *f, const char *name, const char *path);

#endif
