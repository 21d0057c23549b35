/* text.c - growing texts, numbers as text and back, and the nearest known name.
 * SPDX-License-Identifier: MIT
 *
 * Numbers are written and read in the "C" locale whatever the host program has set: a comma instead
 * of a point would make files that nobody can read back. glibc hands out that locale without
 * allocating. */
#include "base/text.h"

#include <assert.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reserves `more` bytes and the NUL. */
static int text_reserve(text *t, size_t more)
{
    size_t need, capacity = t->capacity ? t->capacity : 64;
    if (t->failed || __builtin_add_overflow(t->length, more, &need) || need >= SIZE_MAX / 2) {
        t->failed = 1;
        return 0;
    }
    if (need < t->capacity)
        return 1;
    while (capacity <= need)
        capacity *= 2;
    char *data = realloc(t->data, capacity);
    if (!data) {
        t->failed = 1;
        return 0;
    }
    t->data = data;
    t->capacity = capacity;
    return 1;
}

void text_bytes(text *t, const void *bytes, size_t count)
{
    if (!text_reserve(t, count))
        return;
    if (count)
        memcpy(t->data + t->length, bytes, count);
    t->length += count;
    assert(t->length < t->capacity);
    t->data[t->length] = 0;
}

void text_string(text *t, const char *string)
{
    text_bytes(t, string, strlen(string));
}

void text_add(text *t, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    if (length < 0)
        t->failed = 1;
    else if (text_reserve(t, (size_t)length)) {
        vsnprintf(t->data + t->length, (size_t)length + 1, format, again);
        t->length += (size_t)length;
    }
    va_end(again);
    va_end(args);
}

void text_free(text *t)
{
    free(t->data);
    *t = (text){0};
}

berlu_status text_status(const text *t)
{
    return t->failed ? berlu_fail(BERLU_ERR_MEMORY, "text: no memory beyond %zu bytes", t->length) : BERLU_OK;
}

static locale_t c_locale_enter(void)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return plain ? uselocale(plain) : (locale_t)0;
}

static void c_locale_leave(locale_t before)
{
    if (before)
        freelocale(uselocale(before));
}

static const char *special_text(char out[NUMBER_TEXT], double value)
{
    return strcpy(out, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

/* In the normal range `digits` (DBL_DIG, FLT_DIG) always survive the trip through binary, so a
 * decimal that short is found at once and %g drops its zeros. Subnormals hold fewer digits; there
 * the search starts at one. */
const char *number_text(char out[NUMBER_TEXT], double value)
{
    if (!isfinite(value))
        return special_text(out, value);
    locale_t before = c_locale_enter();
    int digits = fabs(value) < DBL_MIN ? 1 : DBL_DIG;
    do
        snprintf(out, NUMBER_TEXT, "%.*g", digits, value);
    while (strtod(out, NULL) != value && ++digits <= 17);
    c_locale_leave(before);
    return out;
}

const char *number_text_f32(char out[NUMBER_TEXT], float value)
{
    if (!isfinite(value))
        return special_text(out, value);
    locale_t before = c_locale_enter();
    int digits = fabsf(value) < FLT_MIN ? 1 : FLT_DIG;
    do
        snprintf(out, NUMBER_TEXT, "%.*g", digits, value);
    while (strtof(out, NULL) != value && ++digits <= 9);
    c_locale_leave(before);
    return out;
}

int number_parse(const char *string, double *out)
{
    if (!*string || strchr(" \t\n\v\f\r", *string))
        return 0;
    char *end;
    locale_t before = c_locale_enter();
    double value = strtod(string, &end);
    c_locale_leave(before);
    if (*end)
        return 0;
    *out = value;
    return 1;
}

int count_parse(const char *string, int64_t *out)
{
    if (strchr(" \t\n\v\f\r", *string)) /* also the empty text */
        return 0;
    char *end;
    long long whole = strtoll(string, &end, 10);
    double number;
    if (end != string && strlen(end) == 2 && end[1] == 'i') {
        const char *units = "KMG", *unit = strchr(units, end[0]);
        return unit && !__builtin_mul_overflow(whole, 1ll << (10 * (unit - units + 1)), out);
    }
    if (end != string && !*end && !(whole == INT64_MAX || whole == INT64_MIN)) {
        *out = whole;
        return 1;
    }
    if (!number_parse(string, &number) || fabs(number) > 0x1p53 || number != floor(number))
        return 0;
    *out = (int64_t)number;
    return 1;
}

int flag_parse(const char *string, int64_t *out)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on", "0", "1"};
    for (size_t i = 0; i < COUNT(words); i++)
        if (strcmp(string, words[i]) == 0) {
            *out = (int64_t)(i & 1);
            return 1;
        }
    return 0;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

enum { WORD = 64 };

/* ASCII alone, in every locale. */
static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* Does `word` begin with all of `head`, whatever the case? */
static int begins_with(const char *word, const char *head)
{
    for (; *head && lower(*word) == lower(*head); head++)
        word++;
    return !*head;
}

/* Edit distance where swapping two neighbours counts as one error and case as none. Keeps three
 * rows of the usual table. */
static size_t word_distance(const char *first, const char *second)
{
    char a[WORD + 1] = "", b[WORD + 1] = "";
    for (size_t i = 0; first[i]; i++)
        a[i] = lower(first[i]);
    for (size_t i = 0; second[i]; i++)
        b[i] = lower(second[i]);
    size_t rows[3][WORD + 1], columns = strlen(b);
    size_t *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= columns; j++)
        above[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        row[0] = i;
        for (size_t j = 1; j <= columns; j++) {
            size_t change = above[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = least(change, 1 + least(above[j], row[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
        size_t *oldest = before;
        before = above;
        above = row;
        row = oldest;
    }
    return above[columns];
}

/* Length of the character at `s`, 0 when it is invalid: cut short, overlong, a surrogate, beyond
 * U+10FFFF. */
static size_t utf8_length(const unsigned char *s)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = s[0] < 0x80 ? 1 : s[0] < 0xc0 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf8 ? 4 : 0;
    uint32_t code = length < 2 ? s[0] : s[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0; /* the closing NUL included */
        code = code << 6 | (s[i] & 0x3f);
    }
    return length && (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) ? 0 : length;
}

size_t utf8_span(const char *string)
{
    const unsigned char *s = (const unsigned char *)string;
    size_t at = 0;
    for (size_t length; s[at] && (length = utf8_length(s + at)) > 0;)
        at += length;
    return at;
}

static const char *entity_of(char c)
{
    return c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : NULL;
}

void html_text(text *out, const char *words)
{
    const char *broken = words + utf8_span(words);
    for (; *words; words++) {
        const char *entity = entity_of(*words);
        if (words == broken) {
            text_string(out, "\uFFFD");
            broken = words + 1 + utf8_span(words + 1);
        } else if (entity) {
            text_string(out, entity);
        } else if ((unsigned char)*words >= 0x20 || *words == '\n' || *words == '\t') {
            text_bytes(out, words, 1);
        }
    }
}

const char *number_advice(char out[NUMBER_ADVICE], const char *word)
{
    static const char units[] = "kmg";
    size_t length = strlen(word), digits = strspn(word, "0123456789");
    out[0] = '\0';
    if (length > 24)
        return out;
    if (word[digits] == ',' && digits > 0 && strspn(word + digits + 1, "0123456789eE+-") == length - digits - 1) {
        snprintf(out, NUMBER_ADVICE, "; write %.*s.%s", (int)digits, word, word + digits + 1);
        return out;
    }
    char last = (char)(word[digits] | 0x20); /* lower case */
    const char *unit = word[digits] ? strchr(units, last) : NULL;
    int bytes = unit && (word[digits + 1] == 'b' || word[digits + 1] == 'B');
    if (!unit || digits == 0 || digits > 6 || word[digits + 1 + (size_t)bytes])
        return out;
    long long count = atoll(word);
    int power = (int)(unit - units) + 1;
    snprintf(out, NUMBER_ADVICE, "; write %lld%ci (%lld) or %lld", count, *unit - 0x20, count << (10 * power),
             count * (power == 1   ? 1000ll
                      : power == 2 ? 1000000ll
                                   : 1000000000ll));
    return out;
}

int name_is_identifier(const char *word)
{
    static const char tail[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    enum { LETTERS = 52 };
    return *word && memchr(tail, *word, LETTERS) && word[strspn(word, tail)] == '\0';
}

/* The one name that continues `word` (optim, optimizer), or that `word` continues (cuda:0, cuda).
 * Short beginnings fit too much. */
static const char *completion(const char *word, const char *const *names)
{
    enum { SHORT = 3 };
    const char *found = NULL;
    for (; *names; names++)
        if ((strlen(word) >= SHORT && begins_with(*names, word)) ||
            (strlen(*names) > SHORT && begins_with(word, *names) && strchr(":.-= ", word[strlen(*names)]))) {
            if (found)
                return NULL;
            found = *names;
        }
    return found;
}

const char *nearest_name(const char *word, const char *const *names)
{
    const char *const *all = names;
    size_t length = strlen(word), best = length / 3 + 1; /* an error or two, not another word */
    const char *nearest = NULL;
    if (length > WORD)
        return NULL;
    for (; *names; names++) {
        if (strlen(*names) > WORD)
            continue;
        size_t distance = word_distance(word, *names);
        if (distance < best || (distance == best && !nearest && distance < length)) {
            best = distance;
            nearest = *names;
        }
    }
    return nearest ? nearest : completion(word, all);
}
