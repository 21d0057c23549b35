/* sanitized.h - SANITIZED: whether this build runs under the address or the thread sanitizer.
 * SPDX-License-Identifier: MIT
 *
 * They have an allocator of their own and reserve terabytes of addresses, so what a process takes,
 * and a limit on it, says nothing about the program. gcc and clang tell it in different ways. */
#ifndef SUPPORT_SANITIZED_H
#define SUPPORT_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#endif
