/* sanitized.h - SANITIZED: whether this build runs under the address or the thread sanitizer;
 * SANITIZED_THREAD: under the latter. SPDX-License-Identifier: MIT
 *
 * They have an allocator of their own and reserve terabytes of addresses, so what a process takes,
 * and a limit on it, says nothing about the program. gcc and clang tell it in different ways. */
#ifndef SUPPORT_SANITIZED_H
#define SUPPORT_SANITIZED_H

#if defined(__has_feature)
#define SANITIZED_THREAD  __has_feature(thread_sanitizer)
#define SANITIZED_ADDRESS __has_feature(address_sanitizer)
#else
#ifdef __SANITIZE_THREAD__
#define SANITIZED_THREAD 1
#else
#define SANITIZED_THREAD 0
#endif
#ifdef __SANITIZE_ADDRESS__
#define SANITIZED_ADDRESS 1
#else
#define SANITIZED_ADDRESS 0
#endif
#endif
#define SANITIZED (SANITIZED_THREAD || SANITIZED_ADDRESS)

#endif
