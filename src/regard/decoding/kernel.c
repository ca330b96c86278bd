/* One step of decoding, and the encoder, in one call each: `regard.decoding.kernel` compiles and loads this where the
 * machine has a C compiler. Everything is plain C with vectors of 16 numbers (an extension that gcc and clang share), so
 * it runs on any processor; where AVX-512 has an instruction for bf16 or int8 products, it is used.
 *
 * R rows, D d_model, H heads, G key heads, K and V widths of a head's key and value, rounded up to 16 with zeros.
 * A cache slot holds a token's keys and values of one layer: G*K numbers, then G*V, then 16 that keep slots apart
 * (strides of a power of two would all fall into the same few lines of the processor's cache).
 */
#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

typedef float F __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t I __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint8_t B16 __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint16_t H16 __attribute__((vector_size(32), aligned(2), may_alias));
#define INLINE static inline __attribute__((always_inline))
#define AT(p) (*(const F *)(p))
#define PUT(p) (*(F *)(p))

enum { FLOAT32, BFLOAT16, INT8 };
enum { RELU, GELU, GELU_TANH, SILU, SWIGLU };
enum { PLAIN = 0, WITH_RELU = 1, ADD = 2 };

#if defined(__AVX512F__)
enum { LANES = 4, MOST = 6 }; /* 24 sums, 4 weights and a broadcast value fit into 32 registers */
#else
enum { LANES = 1, MOST = 4 };
#endif
enum { PANEL = 16 * LANES, TILE = 96 };

typedef struct {
    const uint32_t *weight; /* panels of `PANEL` outputs: for each word of inputs, a word for each output */
    const float *bias;      /* zeros if there is none */
    const float *scale;     /* int8: of each output's weights */
    const int32_t *offset;  /* int8: 128 times the sum of each output's weights, for inputs are stored plus 128 */
    int32_t outputs, words; /* a word is 4 bytes of inputs: 1 float32, 2 bf16, 4 int8 */
} Linear;

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
    const int32_t *tokens, *places; /* (R) pieces and their positions */
    const int32_t *slots;           /* (R, stride) where each row's keys lie, in order; null: contiguous from first */
    const int32_t *first, *counts;  /* (R) without slots: where a row's keys begin, and how many there are */
    float *cache;                   /* (layers, room, slot) */
    const float *const *memory;     /* (R) each row's source: (tokens, slot) of layer 0 */
    const int32_t *memory_tokens;   /* (R) */
    const int64_t *memory_layer;    /* (R) numbers from one layer's memory to the next's */
    const int32_t *observe;         /* (observed, 2) layer and head */
    float *seen;                    /* (R, observed, widest) */
    float *x, *wide, *scores;       /* work: (R, D), (R, widest product), (one row's scores) */
    uint32_t *packed;               /* (R, most words) */
    float *scales;                  /* (R) */
    float *out;                     /* logits, or the encoder's states */
    int64_t room;
    int32_t rows, stride, observed, widest;
} Batch;

INLINE float sum(F x) {
#if defined(__AVX512F__)
    return _mm512_reduce_add_ps((__m512)x);
#else
    float total = 0;
    for (int i = 0; i < 16; i++) total += x[i];
    return total;
#endif
}

INLINE float largest(F x) {
#if defined(__AVX512F__)
    return _mm512_reduce_max_ps((__m512)x);
#else
    float most = x[0];
    for (int i = 1; i < 16; i++) most = x[i] > most ? x[i] : most;
    return most;
#endif
}

INLINE F bigger(F a, F b) {
#if defined(__AVX512F__)
    return (F)_mm512_max_ps((__m512)a, (__m512)b);
#else
    I take = a > b;
    return (F)(((I)a & take) | ((I)b & ~take));
#endif
}

INLINE F every(float x) { return (F){} + x; }

/* exp to a relative 2e-7: 2 to the whole part by its bits, the rest by a polynomial (Cephes) */
INLINE F exponential(F x) {
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to a whole number */
    x = bigger(x, every(-87.0f));
    F shifted = x * 1.44269504088896341f + magic;
    F whole = shifted - magic;
    F r = x - whole * 0.693359375f;
    r = r - whole * -2.12194440e-4f;
    F p = every(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    I power = ((I)shifted - (I)every(magic) + 127) << 23;
    return p * (F)power;
}

/* acc + a . b, of one word of an input and one word of 16 outputs' weights */
INLINE I multiply(const int kind, I acc, uint32_t a, I b) {
    if (kind == FLOAT32) {
        float value;
        memcpy(&value, &a, 4);
        return (I)((F)acc + value * (F)b);
    }
    if (kind == BFLOAT16) {
#if defined(__AVX512BF16__)
        return (I)_mm512_dpbf16_ps((__m512)acc, (__m512bh)_mm512_set1_epi32((int)a), (__m512bh)b);
#else
        uint32_t low = a << 16, high = a & 0xffff0000u;
        float first, second;
        memcpy(&first, &low, 4);
        memcpy(&second, &high, 4);
        return (I)((F)acc + first * (F)(b << 16) + second * (F)(b & (int32_t)0xffff0000));
#endif
    }
#if defined(__AVX512VNNI__)
    return (I)_mm512_dpbusd_epi32((__m512i)acc, _mm512_set1_epi32((int)a), (__m512i)b);
#else
    for (int j = 0; j < 4; j++) acc += (int32_t)((a >> (8 * j)) & 255) * ((b << (24 - 8 * j)) >> 24);
    return acc;
#endif
}

/* `rows` rows of inputs times a panel of weights */
INLINE void panel(const int kind, const int rows, const Linear *l, int begin, const uint32_t *a, const float *scales,
                  float *out, long width, int mode) {
    I acc[MOST][LANES];
    const uint32_t *w = l->weight + (long)begin * l->words;
    const int words = l->words;
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int v = 0; v < LANES; v++) acc[r][v] = kind == INT8 ? -*(const I *)(l->offset + begin + 16 * v) : (I){};
    for (int k = 0; k < words; k++) {
        I b[LANES];
#pragma GCC unroll 8
        for (int v = 0; v < LANES; v++) b[v] = *(const I *)(w + (long)k * PANEL + 16 * v);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
            for (int v = 0; v < LANES; v++) acc[r][v] = multiply(kind, acc[r][v], a[(long)r * words + k], b[v]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int v = 0; v < LANES; v++) {
            int n = begin + 16 * v, left = l->outputs - n;
            if (left <= 0) continue;
            F x = (F)acc[r][v];
            if (kind == INT8) x = __builtin_convertvector(acc[r][v], F) * (AT(l->scale + n) * scales[r]);
            x += AT(l->bias + n);
            if (mode & WITH_RELU) x = bigger(x, (F){});
            float *place = out + r * width + n;
            if (left >= 16) {
                if (mode & ADD) x += AT(place);
                PUT(place) = x;
            } else {
                for (int i = 0; i < left; i++) place[i] = mode & ADD ? x[i] + place[i] : x[i];
            }
        }
}

INLINE void product_of(const int kind, const Linear *l, const uint32_t *a, const float *scales, int rows, float *out,
                       long width, int mode) {
    for (int n = 0; n < l->outputs; n += PANEL) {
        int r = 0;
        for (; r + MOST <= rows; r += MOST)
            panel(kind, MOST, l, n, a + (long)r * l->words, scales + r, out + r * width, width, mode);
        const uint32_t *rest = a + (long)r * l->words;
        float *place = out + r * width;
        switch (rows - r) {
        case 5: panel(kind, 5 < MOST ? 5 : 1, l, n, rest, scales + r, place, width, mode); break;
        case 4: panel(kind, 4 < MOST ? 4 : 1, l, n, rest, scales + r, place, width, mode); break;
        case 3: panel(kind, 3, l, n, rest, scales + r, place, width, mode); break;
        case 2: panel(kind, 2, l, n, rest, scales + r, place, width, mode); break;
        case 1: panel(kind, 1, l, n, rest, scales + r, place, width, mode); break;
        }
    }
}

/* rows of packed inputs times weights, put or added into rows of `width` numbers */
static void product(int kind, const Linear *l, const uint32_t *a, const float *scales, int rows, float *out, long width,
                    int mode) {
    if (kind == FLOAT32) product_of(FLOAT32, l, a, scales, rows, out, width, mode);
    else if (kind == BFLOAT16) product_of(BFLOAT16, l, a, scales, rows, out, width, mode);
    else product_of(INT8, l, a, scales, rows, out, width, mode);
}

/* one row of `n` numbers as the products take it; int8: rounded to 255 steps between minus and plus its largest */
INLINE void pack(int kind, const float *x, int n, uint32_t *to, float *scale) {
    if (kind == FLOAT32) {
        memcpy(to, x, 4 * (size_t)n);
    } else if (kind == BFLOAT16) {
        uint16_t *words = (uint16_t *)to;
        for (int i = 0; i < n; i += 16) {
            I bits = *(const I *)(x + i);
            bits = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
            *(H16 *)(words + i) = __builtin_convertvector(bits, H16);
        }
    } else {
        uint8_t *bytes = (uint8_t *)to;
        F most = {};
        for (int i = 0; i < n; i += 16) most = bigger(most, bigger(AT(x + i), -AT(x + i)));
        float peak = largest(most), by = peak > 0 ? 127.0f / peak : 0.0f;
        for (int i = 0; i < n; i += 16) {
            I steps = (I)(AT(x + i) * by + 12582912.0f) - 0x4b400000 + 128;
            *(B16 *)(bytes + i) = __builtin_convertvector(steps, B16);
        }
        *scale = peak / 127.0f;
    }
}

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

/* rows as inputs of a product, through a norm if there is one before it */
static void ready(const Model *m, const float *x, int rows, int d, const Norm *n, uint32_t *packed, float *scales,
                  float *work) {
    const int words = m->kind == FLOAT32 ? d : m->kind == BFLOAT16 ? d / 2 : d / 4;
    for (int r = 0; r < rows; r++) {
        const float *row = x + (long)r * d;
        if (n) {
            norm(row, work, d, n, m->epsilon);
            row = work;
        }
        pack(m->kind, row, d, packed + (long)r * words, scales + r);
    }
}

/* what one row's heads find among `count` keys; `weights` holds the last head's distribution, and `seen` is told */
static void attend(const Model *m, const float *q, const float *held, const int32_t *slots, int count,
                   const float *distances, int reach, int place, float *out, float *weights, const Batch *b, int layer,
                   float *seen) {
    const int K = m->key_width, V = m->value_width, slot = m->key_heads * (K + V) + 16;
    const int padded = (count + 15) & ~15;
    for (int h = 0; h < m->heads; h++) {
        const int g = h / (m->heads / m->key_heads);
        const float *query = q + h * K, *keys = held + g * K, *values = held + m->key_heads * K + g * V;
        const float *bias = distances ? distances + (long)h * (2 * reach - 1) + reach - 1 - place : 0;
        for (int t = 0; t < count; t++) {
            const float *key = keys + (long)(slots ? slots[t] : t) * slot;
            F dot = AT(query) * AT(key);
            for (int i = 16; i < K; i += 16) dot += AT(query + i) * AT(key + i);
            weights[t] = sum(dot) + (bias ? bias[t] : 0.0f);
        }
        for (int t = count; t < padded; t++) weights[t] = -INFINITY;
        F most = AT(weights), total = {};
        for (int t = 16; t < padded; t += 16) most = bigger(most, AT(weights + t));
        const float peak = largest(most);
        for (int t = 0; t < padded; t += 16) {
            F x = exponential(AT(weights + t) - peak);
            PUT(weights + t) = x;
            if (t + 16 <= count) total += x;
        }
        float whole = sum(total);
        for (int t = count & ~15; t < count; t++) whole += weights[t];
        const float share = 1.0f / whole;
        for (int i = 0; i < V; i += 16) {
            F found = {};
            for (int t = 0; t < count; t++) found += weights[t] * AT(values + (long)(slots ? slots[t] : t) * slot + i);
            PUT(out + h * V + i) = found * share;
        }
        for (int a = 0; seen && a < b->observed; a++)
            if (b->observe[2 * a] == layer && b->observe[2 * a + 1] == h)
                for (int t = 0; t < count; t++) seen[(long)a * b->widest + t] = weights[t] * share;
    }
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

static void feed_forward(const Model *m, const Layer *l, const Batch *b) {
    const int D = m->d_model, F_ = m->d_ff, wide = l->inner.outputs;
    for (int r = 0; r < b->rows; r += TILE) { /* as many rows as stay in the cache between the two products */
        const int rows = b->rows - r < TILE ? b->rows - r : TILE;
        ready(m, b->x + (long)r * D, rows, D, m->pre ? &l->feed_forward_norm : 0, b->packed, b->scales, b->scores);
        product(m->kind, &l->inner, b->packed, b->scales, rows, b->wide, wide, m->activation == RELU ? WITH_RELU : 0);
        for (int i = 0; i < rows; i++) {
            float *row = b->wide + (long)i * wide;
            if (m->activation != RELU) activate(row, wide, F_, m->activation);
            if (wide != F_) memmove(b->wide + (long)i * F_, row, 4 * (size_t)F_);
        }
        ready(m, b->wide, rows, F_, 0, b->packed, b->scales, 0);
        product(m->kind, &l->outer, b->packed, b->scales, rows, b->x + (long)r * D, D, ADD);
    }
    if (!m->pre)
        for (int r = 0; r < b->rows; r++) norm(b->x + (long)r * D, b->x + (long)r * D, D, &l->feed_forward_norm, m->epsilon);
}

static void look(const Model *m, const Stack *s, int number, const Batch *b) {
    const Layer *l = s->layers + number;
    const int D = m->d_model, keys = m->key_heads * m->key_width, values = m->key_heads * m->value_width;
    const int queries = m->heads * m->key_width, found = m->heads * m->value_width, slot = keys + values + 16;
    const int wide = queries + keys + values;
    float *cache = b->cache + (b->slots ? number * b->room * slot : 0);
    ready(m, b->x, b->rows, D, m->pre ? &l->attention_norm : 0, b->packed, b->scales, b->scores);
    product(m->kind, &l->project, b->packed, b->scales, b->rows, b->wide, wide, PLAIN);
    for (int r = 0; r < b->rows; r++) { /* all keys are there before anyone looks: rows may be of one prompt */
        float *row = b->wide + (long)r * wide;
        if (s->turns) {
            turn(row, m->heads, m->key_width, m->turned, s->turns, b->places[r]);
            turn(row + queries, m->key_heads, m->key_width, m->turned, s->turns, b->places[r]);
        }
        long own = b->slots ? b->slots[(long)r * b->stride + b->places[r]] : r;
        memcpy(cache + own * slot, row + queries, 4 * (size_t)(keys + values));
    }
    float *answers = b->wide + (long)b->rows * wide;
    for (int r = 0; r < b->rows; r++)
        attend(m, b->wide + (long)r * wide, b->slots ? cache : cache + (long)b->first[r] * slot,
               b->slots ? b->slots + (long)r * b->stride : 0, b->slots ? b->places[r] + 1 : b->counts[r], s->distances,
               s->reach, b->places[r], answers + (long)r * found, b->scores, b, number, 0);
    ready(m, answers, b->rows, found, 0, b->packed, b->scales, 0);
    product(m->kind, &l->join, b->packed, b->scales, b->rows, b->x, D, ADD);
    if (!m->pre)
        for (int r = 0; r < b->rows; r++) norm(b->x + (long)r * D, b->x + (long)r * D, D, &l->attention_norm, m->epsilon);
}

static void look_across(const Model *m, const Stack *s, int number, const Batch *b) {
    const Layer *l = s->layers + number;
    const int D = m->d_model, queries = m->heads * m->key_width, found = m->heads * m->value_width;
    ready(m, b->x, b->rows, D, m->pre ? &l->cross_norm : 0, b->packed, b->scales, b->scores);
    product(m->kind, &l->query, b->packed, b->scales, b->rows, b->wide, queries, PLAIN);
    float *answers = b->wide + (long)b->rows * queries;
    for (int r = 0; r < b->rows; r++)
        attend(m, b->wide + (long)r * queries, b->memory[r] + number * b->memory_layer[r], 0, b->memory_tokens[r], 0, 0,
               0, answers + (long)r * found, b->scores, b, number,
               b->seen ? b->seen + (long)r * b->observed * b->widest : 0);
    ready(m, answers, b->rows, found, 0, b->packed, b->scales, 0);
    product(m->kind, &l->across, b->packed, b->scales, b->rows, b->x, D, ADD);
    if (!m->pre)
        for (int r = 0; r < b->rows; r++) norm(b->x + (long)r * D, b->x + (long)r * D, D, &l->cross_norm, m->epsilon);
}

static void through(const Model *m, const Stack *s, const Batch *b) {
    const int D = m->d_model;
    for (int r = 0; r < b->rows; r++) {
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
    for (int number = 0; number < s->count; number++) {
        look(m, s, number, b);
        if (s->cross) look_across(m, s, number, b);
        feed_forward(m, s->layers + number, b);
    }
}

/* read one token a row; with `out`, the logits of the next pieces */
void regard_step(const Model *m, const Batch *b) {
    through(m, &m->decoder, b);
    if (!b->out) return;
    ready(m, b->x, b->rows, m->d_model, m->decoder.last.gamma ? &m->decoder.last : 0, b->packed, b->scales, b->scores);
    product(m->kind, &m->output, b->packed, b->scales, b->rows, b->out, m->output.outputs, PLAIN);
}

/* read whole sources, their tokens one after another; `out` is what the decoder's layers remember: (layers, R, slot) */
void regard_encode(const Model *m, const Batch *b) {
    through(m, &m->encoder, b);
    const int slot = m->key_heads * (m->key_width + m->value_width) + 16;
    ready(m, b->x, b->rows, m->d_model, m->encoder.last.gamma ? &m->encoder.last : 0, b->packed, b->scales, b->scores);
    for (int number = 0; number < m->decoder.count; number++)
        product(m->kind, &m->decoder.layers[number].remember, b->packed, b->scales, b->rows,
                b->out + (long)number * b->rows * slot, slot, PLAIN);
}

/* each row's `k` largest scores in order, their places, and the logarithm of the sum of all exponentials */
void regard_rank(const float *logits, int64_t rows, int64_t pieces, int64_t k, float *best, int64_t *ids, float *whole) {
    for (long r = 0; r < rows; r++, logits += pieces, best += k, ids += k) {
        long held = 0, n = pieces & ~15L;
        float least = -INFINITY;
        for (long i = 0; i < pieces; i += 16) { /* a block of 16 is looked into only if its largest would be kept */
            long many = i < n ? 16 : pieces - n;
            if (many == 16 && held == k && !(largest(AT(logits + i)) > least)) continue;
            for (long j = i; j < i + many; j++) {
                float x = logits[j];
                if (held == k && !(x > least)) continue;
                long at = held < k ? held++ : k - 1;
                for (; at > 0 && best[at - 1] < x; at--) best[at] = best[at - 1], ids[at] = ids[at - 1];
                best[at] = x, ids[at] = j;
                least = best[held - 1];
            }
        }
        const float peak = best[0];
        F total = {};
        for (long i = 0; i < n; i += 16) total += exponential(AT(logits + i) - peak);
        float rest = sum(total);
        for (long i = n; i < pieces; i++) rest += expf(logits[i] - peak);
        whole[r] = peak + logf(rest);
    }
}

int32_t regard_panel(void) { return PANEL; }
int32_t regard_tile(void) { return TILE; }

/* a product alone: for the trial that finds the fastest kind here */
void regard_product(int32_t kind, const Linear *l, const float *x, int64_t rows, int64_t inputs, uint32_t *packed,
                    float *scales, float *out) {
    Model m = {.kind = kind};
    ready(&m, x, (int)rows, (int)inputs, 0, packed, scales, 0);
    product(kind, l, packed, scales, (int)rows, out, l->outputs, PLAIN);
}
