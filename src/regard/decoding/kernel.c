/* One step of decoding, and the encoder, in one call each: `regard.decoding.kernel` compiles and loads this where the
 * machine has a C compiler. Everything is plain C with vectors of 16 numbers (an extension that gcc and clang share), so
 * it runs on any processor (products.c says what it uses where it is there).
 *
 * R rows, D d_model, H heads, G key heads, K and V widths of a head's key and value, rounded up to 16 with zeros.
 * A cache slot holds a token's keys and values of one layer: G*K numbers, then G*V, then 16 that keep slots apart
 * (strides of a power of two would all fall into the same few lines of the processor's cache).
 */
#if defined(__linux__) && defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "../nn/vectors.c"
#include "team.c"
#include "products.c"

typedef struct {
    const float *gamma, *beta; /* no beta: RMS norm; no gamma: none at all */
} Norm;

typedef struct {
    Linear project, join, query, remember, across, inner, outer;
    Norm attention_norm, cross_norm, feed_forward_norm;
} Layer;

typedef struct {
    const Layer *layers;
    Norm last, embedded;
    const float *pieces, *positions, *turns, *distances; /* distances: (H, 2*reach - 1), middle is distance 0 */
    int32_t count, reach, cross;
} Stack;

typedef struct {
    Stack encoder, decoder;
    Linear output;
    int32_t kind, d_model, heads, key_heads, key_width, value_width, turned, d_ff, activation, pre;
    float epsilon, embedding_scale;
} Model;

typedef struct {
    int32_t *tokens, *places; /* (R) pieces and their positions */
    int32_t *slots;           /* (R, stride) where each row's keys lie, in order; null: contiguous from first */
    const int32_t *first, *counts;  /* (R) without slots: where a row's keys begin, and how many there are */
    float *cache;                   /* (layers, room, slot) */
    const float **memory;           /* (R) each row's source: (tokens, slot) of layer 0 */
    int32_t *memory_tokens;         /* (R) */
    int64_t *memory_layer;          /* (R) numbers from one layer's memory to the next's */
    const int32_t *observe;         /* (observed, 2) layer and head */
    float *seen;                    /* (R, observed, widest) */
    float *x, *wide, *scores;       /* work: (R, D), (R, widest product), (threads, span): a row's scores */
    uint32_t *packed;               /* (R, most words) */
    float *scales;                  /* (R) */
    float *out;                     /* logits, or the encoder's states */
    float *best, *whole, *block;    /* (R, keep) and (R): `keep` best logits, log of the sum of exps; work: (R, PANEL) */
    int64_t *best_ids;              /* (R, keep) */
    int64_t room;
    int32_t rows, stride, observed, widest, keep, threads, span;
} Batch;

/* the norm of a row, perhaps in place */
static void norm(const float *x, float *y, int d, const Norm *n, float epsilon) {
    F total = {}, square = {};
    float mean = 0;
    if (n->beta) {
        for (int i = 0; i < d; i += 16) total += AT(x + i);
        mean = sum(total) / d;
    }
    for (int i = 0; i < d; i += 16) {
        F c = AT(x + i) - mean;
        square += c * c;
    }
    float by = 1.0f / sqrtf(sum(square) / d + epsilon);
    for (int i = 0; i < d; i += 16) {
        F c = (AT(x + i) - mean) * by * AT(n->gamma + i);
        if (n->beta) c += AT(n->beta + i);
        PUT(y + i) = c;
    }
}

/* rows as inputs of a product, through a norm if there is one before it; then all meet */
static void ready(const Model *m, const float *x, int rows, int d, const Norm *n, const Batch *b, Team team) {
    const int words = m->kind == FLOAT32 ? d : m->kind == BFLOAT16 ? d / 2 : d / 4;
    float *work = b->scores + (long)team.me * b->span;
    for (int r = begin_of(team, rows); r < end_of(team, rows); r++) {
        const float *row = x + (long)r * d;
        if (n) {
            norm(row, work, d, n, m->epsilon);
            row = work;
        }
        pack(m->kind, row, d, b->packed + (long)r * words, b->scales + r);
    }
    meet(team);
}

/* rows times weights, put or added into rows of `width` numbers; then all meet */
static void multiply_rows(const Model *m, const Linear *l, const Batch *b, int rows, float *out, long width, int mode,
                          Team team) {
    product(m->kind, l, b->packed, b->scales, rows, out, width, mode, team);
    meet(team);
}

/* the norm behind a sum, in place; then all meet */
static void norm_rows(const Model *m, const Batch *b, const Norm *n, Team team) {
    for (int r = begin_of(team, b->rows); r < end_of(team, b->rows); r++) {
        float *x = b->x + (long)r * m->d_model;
        norm(x, x, m->d_model, n, m->epsilon);
    }
    meet(team);
}

/* what one of a row's heads finds among `count` keys; `weights` holds its distribution, and `seen` is told */
static void attend(const Model *m, int h, const float *q, const float *held, const int32_t *slots, int count,
                   const float *distances, int reach, int place, float *out, float *weights, const Batch *b, int layer,
                   float *seen) {
    const int K = m->key_width, V = m->value_width, slot = m->key_heads * (K + V) + 16;
    const int padded = (count + 15) & ~15;
    const int g = h / (m->heads / m->key_heads);
    const float *query = q + h * K, *keys = held + g * K, *values = held + m->key_heads * K + g * V;
    const float *bias = distances ? distances + (long)h * (2 * reach - 1) + reach - 1 - place : 0;
    for (int first = 0; first < count; first += 16) {
        const int last = count - first < 16 ? count - first : 16;
        F dots[16] = {};
        for (int t = 0; t < last; t++) {
            const float *key = keys + (long)(slots ? slots[first + t] : first + t) * slot;
            F dot = {};
            int i = 0;
            for (; i + 64 <= K; i += 64)
#pragma GCC unroll 4
                for (int j = 0; j < 64; j += 16) dot += AT(query + i + j) * AT(key + i + j);
            for (; i < K; i += 16) dot += AT(query + i) * AT(key + i);
            dots[t] = dot;
        }
        PUT(weights + first) = sums(dots);
    }
    for (int t = 0; bias && t < count; t++) weights[t] += bias[t];
    for (int t = count; t < padded; t++) weights[t] = -INFINITY;
    F most = AT(weights), total = {};
    for (int t = 16; t < padded; t += 16) most = bigger(most, AT(weights + t));
    const float peak = largest(most);
    for (int t = 0; t < padded; t += 16) {
        PUT(weights + t) = exponential(AT(weights + t) - peak); /* 1e-38 behind the last */
        total += AT(weights + t);
    }
    const float whole = sum(total);
    const float share = 1.0f / whole;
    int i = 0;
    for (; i + 64 <= V; i += 64) { /* four sums at a time: one alone waits for its last addition */
        F found[4] = {};
        for (int t = 0; t < count; t++) {
            const float *value = values + (long)(slots ? slots[t] : t) * slot + i;
#pragma GCC unroll 4
            for (int j = 0; j < 4; j++) found[j] += weights[t] * AT(value + 16 * j);
        }
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) PUT(out + h * V + i + 16 * j) = found[j] * share;
    }
    for (; i < V; i += 16) {
        F found = {};
        for (int t = 0; t < count; t++) found += weights[t] * AT(values + (long)(slots ? slots[t] : t) * slot + i);
        PUT(out + h * V + i) = found * share;
    }
    for (int a = 0; seen && a < b->observed; a++)
        if (b->observe[2 * a] == layer && b->observe[2 * a + 1] == h)
            for (int t = 0; t < count; t++) seen[(long)a * b->widest + t] = weights[t] * share;
}

/* rotary positions: pairs of neighbours turn */
static void turn(float *x, int heads, int width, int turned, const float *turns, int place) {
    const float *cosines = turns + (long)place * turned, *sines = cosines + turned / 2;
    for (int h = 0; h < heads; h++, x += width)
        for (int i = 0; i < turned / 2; i++) {
            float even = x[2 * i], odd = x[2 * i + 1];
            x[2 * i] = even * cosines[i] - odd * sines[i];
            x[2 * i + 1] = even * sines[i] + odd * cosines[i];
        }
}

static void activate(float *x, int width, int d_ff, int kind) {
    const float root = 0.7978845608028654f;
    if (kind == GELU) {
        for (int i = 0; i < d_ff; i++) x[i] = 0.5f * x[i] * (1.0f + erff(x[i] * 0.70710678118654752f));
        return;
    }
    for (int i = 0; i < d_ff; i += 16) {
        F v = AT(x + i), inner = v;
        if (kind == GELU_TANH) inner = 2.0f * root * (v + 0.044715f * v * v * v);
        F gate = v / (1.0f + exponential(-bigger(inner, every(-80.0f))));
        if (kind == SWIGLU) gate *= AT(x + width / 2 + i);
        PUT(x + i) = gate;
    }
}

static void feed_forward(const Model *m, const Layer *l, const Batch *b, Team team) {
    const int D = m->d_model, F_ = m->d_ff, wide = l->inner.outputs;
    for (int r = 0; r < b->rows; r += TILE) { /* as many rows as stay in the cache between the two products */
        const int rows = b->rows - r < TILE ? b->rows - r : TILE;
        ready(m, b->x + (long)r * D, rows, D, m->pre ? &l->feed_forward_norm : 0, b, team);
        multiply_rows(m, &l->inner, b, rows, b->wide, wide, m->activation == RELU ? WITH_RELU : 0, team);
        for (int i = begin_of(team, rows); i < end_of(team, rows); i++)
            if (m->activation != RELU) activate(b->wide + (long)i * wide, wide, F_, m->activation);
        meet(team);
        if (wide != F_ && team.me == 0)
            for (int i = 1; i < rows; i++) memmove(b->wide + (long)i * F_, b->wide + (long)i * wide, 4 * (size_t)F_);
        if (wide != F_) meet(team);
        ready(m, b->wide, rows, F_, 0, b, team);
        multiply_rows(m, &l->outer, b, rows, b->x + (long)r * D, D, ADD, team);
    }
    if (!m->pre) norm_rows(m, b, &l->feed_forward_norm, team);
}

/* rows and heads as one row of things to look up, so that threads share one row's heads too */
static void look(const Model *m, const Stack *s, int number, const Batch *b, Team team) {
    const Layer *l = s->layers + number;
    const int D = m->d_model, keys = m->key_heads * m->key_width, values = m->key_heads * m->value_width;
    const int queries = m->heads * m->key_width, found = m->heads * m->value_width, slot = keys + values + 16;
    const int wide = queries + keys + values, all = b->rows * m->heads;
    float *cache = b->cache + (b->slots ? number * b->room * slot : 0);
    ready(m, b->x, b->rows, D, m->pre ? &l->attention_norm : 0, b, team);
    multiply_rows(m, &l->project, b, b->rows, b->wide, wide, PLAIN, team);
    for (int r = begin_of(team, b->rows); r < end_of(team, b->rows); r++) {
        float *row = b->wide + (long)r * wide;
        if (s->turns) {
            turn(row, m->heads, m->key_width, m->turned, s->turns, b->places[r]);
            turn(row + queries, m->key_heads, m->key_width, m->turned, s->turns, b->places[r]);
        }
        long own = b->slots ? b->slots[(long)r * b->stride + b->places[r]] : r;
        memcpy(cache + own * slot, row + queries, 4 * (size_t)(keys + values));
    }
    meet(team); /* all keys are there before anyone looks: rows may be of one prompt */
    float *answers = b->wide + (long)b->rows * wide, *weights = b->scores + (long)team.me * b->span;
    for (int i = begin_of(team, all); i < end_of(team, all); i++) {
        const int r = i / m->heads;
        attend(m, i % m->heads, b->wide + (long)r * wide, b->slots ? cache : cache + (long)b->first[r] * slot,
               b->slots ? b->slots + (long)r * b->stride : 0, b->slots ? b->places[r] + 1 : b->counts[r], s->distances,
               s->reach, b->places[r], answers + (long)r * found, weights, b, number, 0);
    }
    meet(team);
    ready(m, answers, b->rows, found, 0, b, team);
    multiply_rows(m, &l->join, b, b->rows, b->x, D, ADD, team);
    if (!m->pre) norm_rows(m, b, &l->attention_norm, team);
}

static void look_across(const Model *m, const Stack *s, int number, const Batch *b, Team team) {
    const Layer *l = s->layers + number;
    const int D = m->d_model, queries = m->heads * m->key_width, found = m->heads * m->value_width;
    const int all = b->rows * m->heads;
    ready(m, b->x, b->rows, D, m->pre ? &l->cross_norm : 0, b, team);
    multiply_rows(m, &l->query, b, b->rows, b->wide, queries, PLAIN, team);
    float *answers = b->wide + (long)b->rows * queries, *weights = b->scores + (long)team.me * b->span;
    for (int i = begin_of(team, all); i < end_of(team, all); i++) {
        const int r = i / m->heads;
        attend(m, i % m->heads, b->wide + (long)r * queries, b->memory[r] + number * b->memory_layer[r], 0,
               b->memory_tokens[r], 0, 0, 0, answers + (long)r * found, weights, b, number,
               b->seen ? b->seen + (long)r * b->observed * b->widest : 0);
    }
    meet(team);
    ready(m, answers, b->rows, found, 0, b, team);
    multiply_rows(m, &l->across, b, b->rows, b->x, D, ADD, team);
    if (!m->pre) norm_rows(m, b, &l->cross_norm, team);
}

static void through(const Model *m, const Stack *s, const Batch *b, Team team) {
    const int D = m->d_model;
    for (int r = begin_of(team, b->rows); r < end_of(team, b->rows); r++) {
        float *x = b->x + (long)r * D;
        const float *piece = s->pieces + (long)b->tokens[r] * D;
        const float *place = s->positions ? s->positions + (long)b->places[r] * D : 0;
        for (int i = 0; i < D; i += 16) {
            F v = AT(piece + i) * m->embedding_scale;
            if (place) v += AT(place + i);
            PUT(x + i) = v;
        }
        if (s->embedded.gamma) norm(x, x, D, &s->embedded, m->epsilon);
    }
    meet(team);
    for (int number = 0; number < s->count; number++) {
        look(m, s, number, b, team);
        if (s->cross) look_across(m, s, number, b, team);
        feed_forward(m, s->layers + number, b, team);
    }
}

/* a stack's states, ready for the products behind it */
static void last_norm(const Model *m, const Stack *s, const Batch *b, Team team) {
    ready(m, b->x, b->rows, m->d_model, s->last.gamma ? &s->last : 0, b, team);
}

/* a row's `keep` best so far, in order, and the sum of exponentials below its best, of 16 outputs each */
typedef struct {
    F total;
    float peak;
} Sum;

/* let the logits of outputs from `n` on, at most a panel, take their places among a row's best */
INLINE void rank(const float *x, int n, int count, float *best, int64_t *ids, int keep, Sum *s) {
    float padded[PANEL];
    if (count < PANEL) {
        for (int i = 0; i < PANEL; i++) padded[i] = i < count ? x[i] : -INFINITY;
        x = padded;
    }
    F most = AT(x);
    for (int v = 1; v < LANES; v++) most = bigger(most, AT(x + 16 * v));
    const float peak = largest(most);
    if (peak > s->peak) {
        s->total *= s->peak > -INFINITY ? expf(s->peak - peak) : 0.0f;
        s->peak = peak;
    }
    for (int v = 0; v < LANES; v++) s->total += exponential(AT(x + 16 * v) - s->peak);
    if (!(peak > best[keep - 1])) return;
    for (int i = 0; i < count; i++) {
        if (!(x[i] > best[keep - 1])) continue;
        int at = keep - 1;
        for (; at > 0 && best[at - 1] < x[i]; at--) best[at] = best[at - 1], ids[at] = ids[at - 1];
        best[at] = x[i], ids[at] = n + i;
    }
}

/* the best of the output's logits, which are never in memory all at once: a panel for all rows, then the next */
static void best_of(const Model *m, const Batch *b) {
    Sum sums[b->rows];
    for (long i = 0; i < (long)b->rows * b->keep; i++) b->best[i] = -INFINITY, b->best_ids[i] = 0;
    for (int r = 0; r < b->rows; r++) sums[r] = (Sum){.peak = -INFINITY};
    for (int n = 0; n < m->output.outputs; n += PANEL) {
        const int count = m->output.outputs - n < PANEL ? m->output.outputs - n : PANEL;
        product_panel(m->kind, &m->output, n, b->packed, b->scales, b->rows, b->block - n, PANEL, PLAIN);
        for (int r = 0; r < b->rows; r++)
            rank(b->block + (long)r * PANEL, n, count, b->best + (long)r * b->keep, b->best_ids + (long)r * b->keep,
                 b->keep, sums + r);
    }
    for (int r = 0; r < b->rows; r++) b->whole[r] = sums[r].peak + logf(sum(sums[r].total));
}

static void step(const void *model, const void *batch, Team team) {
    const Model *m = model;
    const Batch *b = batch;
    open_tiles();
    through(m, &m->decoder, b, team);
    if (b->out) {
        last_norm(m, &m->decoder, b, team);
        multiply_rows(m, &m->output, b, b->rows, b->out, m->output.outputs, PLAIN, team);
    }
    close_tiles();
}

static void encode(const void *model, const void *batch, Team team) {
    const Model *m = model;
    const Batch *b = batch;
    open_tiles();
    through(m, &m->encoder, b, team);
    const int slot = m->key_heads * (m->key_width + m->value_width) + 16;
    last_norm(m, &m->encoder, b, team);
    for (int number = 0; number < m->decoder.count; number++)
        multiply_rows(m, &m->decoder.layers[number].remember, b, b->rows, b->out + (long)number * b->rows * slot, slot,
                      PLAIN, team);
    close_tiles();
}

/* read one token a row; with `out`, the logits of the next pieces */
void regard_step(const Model *m, const Batch *b) { together(step, m, b, b->threads); }

/* read whole sources, their tokens one after another; `out` is what the decoder's layers remember: (layers, R, slot) */
void regard_encode(const Model *m, const Batch *b) { together(encode, m, b, b->threads); }

#include "beam.c"

/* ask the system for the processor's tiles; answers whether it lends them */
int32_t regard_start(void) {
#if TILES
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    tiles_lent = syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
#endif
    return tiles_lent;
}

/* for which kinds the processor has products of their own: a bit each */
int32_t regard_multiplies(void) {
    int32_t kinds = tiles_lent ? 1 << BFLOAT16 | 1 << INT8 : 0;
#if defined(__AVX512BF16__)
    kinds |= 1 << BFLOAT16;
#endif
#if defined(__AVX512VNNI__)
    kinds |= 1 << INT8;
#endif
    return kinds;
}

int32_t regard_panel(void) { return PANEL; }
int32_t regard_tile(void) { return TILE; }

/* a product alone: for the trial that finds the fastest kind here */
void regard_product(int32_t kind, const Linear *l, const float *x, int64_t rows, int64_t inputs, uint32_t *packed,
                    float *scales, float *out) {
    const Model m = {.kind = kind};
    const Batch b = {.packed = packed, .scales = scales};
    open_tiles();
    ready(&m, x, (int)rows, (int)inputs, 0, &b, ALONE);
    multiply_rows(&m, l, &b, (int)rows, out, l->outputs, PLAIN, ALONE);
    close_tiles();
}
