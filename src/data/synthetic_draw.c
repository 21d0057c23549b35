/* synthetic_draw.c - one image of the built-in set: a textured shape on a cluttered background.
 * SPDX-License-Identifier: MIT
 *
 * The class is a pair (shape, texture). Everything else is drawn at random: position, size,
 * rotation, three colours, clutter, lighting and noise. Colours are drawn without regard to the
 * class and the texture's two colours are swapped half of the time, so no pixel and no mean colour
 * identifies the class: a linear classifier, which can only weigh pixels, reaches 18 % of ten
 * classes, while a network that can ask "is there a fine alternation along one direction?" passes
 * 85 %. The ranges below were chosen by trying: with free turns and phases a small ViT needs ten
 * times the images.
 *
 * Shapes are signed distances (negative inside) in the shape's own rotated coordinates, where its
 * radius is 1; the edge is smoothed over one pixel. Textures give a share in [0, 1] between two
 * colours. No sine is used, so that every machine draws the same bytes: a rotation is a rational
 * point of the circle, waves are triangles. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "data/draws.h"
#include "data/synthetic.h"

typedef struct point {
    float x, y;
} point;

static float least(float a, float b)
{
    return a < b ? a : b;
}

static float most(float a, float b)
{
    return a > b ? a : b;
}

static float clamp01(float a)
{
    return a < 0 ? 0 : a > 1 ? 1 : a;
}

static float length(float x, float y)
{
    return sqrtf(x * x + y * y);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static float box(point p, float width, float height)
{
    return most(fabsf(p.x) - width, fabsf(p.y) - height);
}

static float shape_bar(point p)
{
    return box(p, 1.0f, 0.38f);
}
static float shape_crescent(point p)
{
    return most(length(p.x, p.y) - 0.95f, 0.75f - length(p.x - 0.5f, p.y));
}
static float shape_cross(point p)
{
    return least(box(p, 0.95f, 0.32f), box(p, 0.32f, 0.95f));
}
static float shape_disc(point p)
{
    return length(p.x, p.y) - 0.85f;
}
static float shape_ell(point p)
{
    point foot = {p.x, p.y - 0.5f}, leg = {p.x + 0.5f, p.y};
    return least(box(foot, 0.85f, 0.35f), box(leg, 0.35f, 0.85f));
}
static float shape_half(point p)
{
    return most(length(p.x, p.y + 0.4f) - 1.0f, -p.y - 0.4f);
}
static float shape_pair(point p)
{
    return length(fabsf(p.x) - 0.52f, p.y) - 0.45f;
}
static float shape_ring(point p)
{
    return fabsf(length(p.x, p.y) - 0.7f) - 0.24f;
}
static float shape_square(point p)
{
    return box(p, 0.72f, 0.72f);
}
static float shape_triangle(point p)
{
    return most(p.y - 0.6f, 0.866f * fabsf(p.x) - 0.5f * p.y - 0.5f);
}

typedef struct shape {
    const char *name;
    float (*distance)(point p);
} shape;
static const shape shapes[] = {
    {"bar", shape_bar},       {"crescent", shape_crescent}, {"cross", shape_cross}, {"disc", shape_disc},
    {"ell", shape_ell},       {"half", shape_half},         {"pair", shape_pair},   {"ring", shape_ring},
    {"square", shape_square}, {"triangle", shape_triangle},
};
static const int shapes_of_ten[] = {2, 3}; /* cross, disc */

/* ---- textures -------------------------------------------------------------------------------- */

/* A triangle wave in [0, 1] of period 1, made steep, so that it is a smoothed square wave. */
static float wave(float t, float steepness)
{
    t -= floorf(t);
    float triangle = t < 0.5f ? 4 * t - 1 : 3 - 4 * t; /* -1 .. 1 */
    return clamp01(0.5f + 0.5f * steepness * triangle);
}

static float pattern_checker(point p, uint32_t cell)
{
    (void)cell;
    float a = wave(p.x, 3), b = wave(p.y, 3);
    return a + b - 2 * a * b;
}
static float pattern_dots(point p, uint32_t cell)
{
    (void)cell;
    float x = p.x - floorf(p.x) - 0.5f, y = p.y - floorf(p.y) - 0.5f;
    return clamp01((0.33f - length(x, y)) * 8 + 0.5f);
}
static float pattern_fade(point p, uint32_t cell)
{
    (void)cell;
    return clamp01(0.5f + 0.22f * p.x);
}
static float pattern_grid(point p, uint32_t cell)
{
    (void)cell;
    float x = fabsf(p.x - floorf(p.x) - 0.5f), y = fabsf(p.y - floorf(p.y) - 0.5f);
    return clamp01((most(x, y) - 0.36f) * 8 + 0.5f);
}
static float pattern_level(point p, uint32_t cell)
{
    (void)cell;
    return wave(p.y, 3);
}
static float pattern_rings(point p, uint32_t cell)
{
    (void)cell;
    return wave(length(p.x, p.y), 3);
}
static float pattern_speckle(point p, uint32_t cell)
{
    (void)p;
    return (float)(cell >> 31);
}
static float pattern_upright(point p, uint32_t cell)
{
    (void)cell;
    return wave(p.x, 3);
}
static float pattern_wide(point p, uint32_t cell)
{
    (void)cell;
    return wave(0.4f * p.x, 6);
}
static float pattern_zigzag(point p, uint32_t cell)
{
    (void)cell;
    float y = 0.5f * p.y;
    y -= floorf(y);
    return wave(p.x + 2.0f * fabsf(y - 0.5f), 3);
}

typedef struct pattern {
    const char *name;
    float (*share)(point p, uint32_t cell); /* p in periods; cell: a random word per small cell of the plane */
} pattern;
static const pattern patterns[] = {
    {"checker", pattern_checker}, {"dots", pattern_dots},       {"fade", pattern_fade},
    {"grid", pattern_grid},       {"level", pattern_level},     {"rings", pattern_rings},
    {"speckle", pattern_speckle}, {"upright", pattern_upright}, {"wide", pattern_wide},
    {"zigzag", pattern_zigzag},
};
static const int patterns_of_ten[] = {0, 1, 4, 5, 7}; /* checker, dots, level, rings, upright */

static const shape *shape_of(size_t classes, size_t label)
{
    return classes == 10 ? &shapes[shapes_of_ten[label / COUNT(patterns_of_ten)]] : &shapes[label / COUNT(patterns)];
}

static const pattern *pattern_of(size_t classes, size_t label)
{
    return classes == 10 ? &patterns[patterns_of_ten[label % COUNT(patterns_of_ten)]]
                         : &patterns[label % COUNT(patterns)];
}

const char *synthetic_class(size_t classes, size_t label, char *out, size_t size)
{
    snprintf(out, size, "%s-%s", shape_of(classes, label)->name, pattern_of(classes, label)->name);
    return out;
}

/* ---- the image ------------------------------------------------------------------------------- */

static float roll_between(draws *d, float low, float high)
{
    return low + (high - low) * philox_f32(draws_word(d));
}

/* A rotation by at most 2 atan(most): a rational point of the circle. most = 1 is a half turn,
 * every direction of a line. */
static point roll_turn(draws *d, float furthest)
{
    float t = roll_between(d, -furthest, furthest), s = 1 / (1 + t * t);
    return (point){(1 - t * t) * s, 2 * t * s};
}

typedef struct colour {
    float c[3];
} colour;

static colour roll_colour(draws *d)
{
    colour k;
    for (int i = 0; i < 3; i++)
        k.c[i] = roll_between(d, 0.05f, 0.95f);
    return k;
}

static float colour_distance(colour a, colour b)
{
    float sum = 0;
    for (int i = 0; i < 3; i++)
        sum += fabsf(a.c[i] - b.c[i]);
    return sum;
}

/* A colour distinct from two others; sixteen tries find one practically always, and the last try is
 * as good. */
static colour roll_colour_apart(draws *d, colour a, colour b, float apart)
{
    colour k = roll_colour(d);
    for (int i = 0; i < 16 && (colour_distance(k, a) < apart || colour_distance(k, b) < apart); i++)
        k = roll_colour(d);
    return k;
}

enum { CLUTTER = 2 };
typedef struct blob {
    point at, along;
    float length, width;
    colour paint;
} blob;

typedef struct scene {
    const shape *shape;
    const pattern *pattern;
    point at, turn, phase, texture_turn;
    float radius, frequency;
    colour ground, ground_slope, first, second;
    point light;
    blob clutter[CLUTTER];
    uint64_t cells; /* key of the speckle */
    float noise;
} scene;

static scene scene_roll(draws *d, size_t classes, size_t label)
{
    scene s = {.shape = shape_of(classes, label), .pattern = pattern_of(classes, label)};
    s.at = (point){roll_between(d, 0.45f, 0.55f), roll_between(d, 0.45f, 0.55f)};
    s.radius = roll_between(d, 0.34f, 0.44f);
    s.turn = roll_turn(d, 0.17f);         /* 20 degrees either way */
    s.texture_turn = roll_turn(d, 0.13f); /* 15 */
    s.phase = (point){roll_between(d, 0, 0.5f), roll_between(d, 0, 0.5f)};
    s.frequency = roll_between(d, 1.6f, 2.2f);
    s.ground = roll_colour(d);
    for (int i = 0; i < 3; i++)
        s.ground_slope.c[i] = roll_between(d, -0.15f, 0.15f);
    s.first = roll_colour_apart(d, s.ground, s.ground, 0.7f);
    s.second = roll_colour_apart(d, s.first, s.ground, 1.0f);
    s.light = (point){roll_between(d, -0.2f, 0.2f), roll_between(d, -0.2f, 0.2f)};
    for (int i = 0; i < CLUTTER; i++) {
        blob *b = &s.clutter[i];
        b->at = (point){roll_between(d, 0, 1), roll_between(d, 0, 1)};
        b->along = roll_turn(d, 1);
        b->length = roll_between(d, 0.05f, 0.30f);
        b->width = roll_between(d, 0.02f, 0.06f);
        b->paint = roll_colour(d);
    }
    s.cells = (uint64_t)draws_word(d) << 32 | draws_word(d);
    s.noise = roll_between(d, 0.02f, 0.06f);
    return s;
}

static point turned(point p, point turn)
{
    return (point){p.x * turn.x + p.y * turn.y, p.y * turn.x - p.x * turn.y};
}

static void blend(colour *under, colour over, float share)
{
    for (int i = 0; i < 3; i++)
        under->c[i] += share * (over.c[i] - under->c[i]);
}

/* A hash is enough for the look of speckle; its cells are half a period wide. */
static uint32_t cell_word(uint64_t key, point p)
{
    uint64_t h = key ^ (uint64_t)(int64_t)floorf(2 * p.x) * 0x9E3779B97F4A7C15ull ^
                 (uint64_t)(int64_t)floorf(2 * p.y) * 0xC2B2AE3D27D4EB4Full;
    h ^= h >> 31;
    h *= 0xD6E8FEB86659FD93ull;
    return (uint32_t)(h >> 32);
}

/* Colour at a point of the unit square, before noise. `pixel` is the size of a pixel. */
static colour scene_at(const scene *s, point at, float pixel)
{
    colour k = s->ground;
    for (int i = 0; i < 3; i++)
        k.c[i] += s->ground_slope.c[i] * (at.x + at.y - 1);
    for (int i = 0; i < CLUTTER; i++) {
        const blob *b = &s->clutter[i];
        point p = turned((point){at.x - b->at.x, at.y - b->at.y}, b->along);
        blend(&k, b->paint, clamp01(0.5f - box(p, b->length, b->width) / pixel));
    }
    point p = {(at.x - s->at.x) / s->radius, (at.y - s->at.y) / s->radius};
    float inside = clamp01(0.5f - s->shape->distance(turned(p, s->turn)) * s->radius / pixel);
    if (inside > 0) {
        point t = turned(p, s->texture_turn);
        t = (point){t.x * s->frequency + s->phase.x, t.y * s->frequency + s->phase.y};
        colour paint = s->second;
        blend(&paint, s->first, s->pattern->share(t, cell_word(s->cells, t)));
        blend(&k, paint, inside);
    }
    float light = 1 + s->light.x * (2 * at.x - 1) + s->light.y * (2 * at.y - 1);
    for (int i = 0; i < 3; i++)
        k.c[i] *= light;
    return k;
}

void synthetic_draw(uint8_t *rgb, int size, size_t classes, uint64_t seed, int split, uint64_t index)
{
    draws d = draws_for(seed, PURPOSE_SYNTHETIC, (uint32_t)split, index);
    scene s = scene_roll(&d, classes, (size_t)(index % classes));
    float pixel = 1.0f / (float)size;
    for (int y = 0; y < size; y++)
        for (int x = 0; x < size; x++, rgb += 3) {
            colour k = scene_at(&s, (point){((float)x + 0.5f) * pixel, ((float)y + 0.5f) * pixel}, pixel);
            uint32_t noise = draws_word(&d);
            for (int i = 0; i < 3; i++, noise >>= 10) {
                float bump = s.noise * ((float)(noise & 1023) * (2.0f / 1023) - 1);
                rgb[i] = (uint8_t)(clamp01(k.c[i] + bump) * 255 + 0.5f);
            }
        }
}
