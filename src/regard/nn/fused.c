/* What torch takes many passes for in a bf16 training step on a processor, in one pass each: attention of short
 * sequences, norms, GELU, dropout and the softmax of the loss, forward and backward. `fused.py` compiles and calls this.
 *
 * Numbers are bf16 in memory and float32 in between; products use the processor's own bf16 instruction, which multiplies
 * pairs of neighbours (a "word", two bf16 in 32 bits) and adds both to a float32. So one side of a product lies in rows
 * of words along what is summed, and the other is interleaved: each word holds the same column of two rows.
 *
 * T queries, S keys, K and V widths of a head's key and value (multiples of 16); "wide" is rounded up to 16.
 */
#include <stdlib.h>

#include "vectors.c"

typedef uint16_t half;

int regard_fused(void) {
#if defined(__AVX512BF16__)
    return 1;
#else
    return 0;
#endif
}

#if defined(__AVX512BF16__)

enum { ROWS = 8 }; /* of a block of a product: with two vectors of columns 16 sums */
static const int64_t PARALLEL = 1 << 15; /* numbers from which a second thread is worth waking */

INLINE int rounded(int n, int to) { return (n + to - 1) / to * to; }
INLINE int least(int a, int b) { return a < b ? a : b; }
INLINE __mmask16 first_of(int n) { return n >= 16 ? 0xffff : n <= 0 ? 0 : (__mmask16)((1u << n) - 1); }

INLINE F from_half(const half *p) {
    return (F)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16);
}
INLINE F from_half_some(const half *p, __mmask16 mask) {
    return (F)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, p)), 16);
}
INLINE void to_half(half *p, F x) { _mm256_storeu_si256((__m256i *)p, (__m256i)_mm512_cvtneps_pbh((__m512)x)); }
INLINE void to_half_some(half *p, F x, __mmask16 mask) {
    _mm256_mask_storeu_epi16(p, mask, (__m256i)_mm512_cvtneps_pbh((__m512)x));
}

/* where x is NaN or plus infinity, of which a softmax makes NaN: faults are passed on, to be seen */
INLINE __mmask16 not_numbers(F x) { return _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(INFINITY), _CMP_NLT_UQ); }
static const half NOT_A_NUMBER = 0x7fc0;

/* ---- products of small matrices ---- */

/* the words of 16 rows of 16, rows turned into columns */
INLINE void turn(const uint32_t *in, int64_t stride, int rows, int words, uint32_t *out, int64_t out_stride) {
    __m512i a[16], b[16];
    const __mmask16 mask = first_of(words);
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        a[i] = i < rows ? _mm512_maskz_loadu_epi32(mask, in + i * stride) : _mm512_setzero_si512();
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
        b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
        a[i] = _mm512_unpacklo_epi64(b[i], b[i + 2]);
        a[i + 1] = _mm512_unpackhi_epi64(b[i], b[i + 2]);
        a[i + 2] = _mm512_unpacklo_epi64(b[i + 1], b[i + 3]);
        a[i + 3] = _mm512_unpackhi_epi64(b[i + 1], b[i + 3]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        b[i] = _mm512_shuffle_i32x4(a[i], a[i + 4], 0x88);
        b[i + 4] = _mm512_shuffle_i32x4(a[i], a[i + 4], 0xdd);
        b[i + 8] = _mm512_shuffle_i32x4(a[i + 8], a[i + 12], 0x88);
        b[i + 12] = _mm512_shuffle_i32x4(a[i + 8], a[i + 12], 0xdd);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        a[i] = _mm512_shuffle_i32x4(b[i], b[i + 8], 0x88);
        a[i + 8] = _mm512_shuffle_i32x4(b[i], b[i + 8], 0xdd);
        a[i + 4] = _mm512_shuffle_i32x4(b[i + 4], b[i + 12], 0x88);
        a[i + 12] = _mm512_shuffle_i32x4(b[i + 4], b[i + 12], 0xdd);
    }
    for (int i = 0; i < words; i++) _mm512_storeu_si512(out + i * out_stride, a[i]);
}

/* (rows, words) as (words, wide rows): zeros where no row is */
static void turned(const uint32_t *in, int64_t stride, int rows, int words, uint32_t *out, int64_t out_stride) {
    for (int r = 0; r < rows; r += 16)
        for (int w = 0; w < words; w += 16)
            turn(in + r * stride + w, stride, rows - r, least(16, words - w), out + w * out_stride + r, out_stride);
}

/* (rows, columns) with two rows in each word: (rows/2, columns) */
static void interleaved(const half *in, int64_t stride, int rows, int columns, uint32_t *out) {
    for (int r = 0; r < rows; r += 2)
        for (int c = 0; c < columns; c += 16) {
            const half *here = in + r * stride + c;
            __m512i low = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)here)), high = _mm512_setzero_si512();
            if (r + 1 < rows) high = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(here + stride)));
            _mm512_storeu_si512(out + r / 2 * columns + c, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
        }
}

INLINE void block(const int lanes, const uint32_t *const a[ROWS], const uint32_t *b, int columns, int from, int to,
                  float *out, int out_columns) {
    __m512 acc[ROWS][2];
#pragma GCC unroll 8
    for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 2
        for (int j = 0; j < lanes; j++) acc[i][j] = _mm512_setzero_ps();
    for (int k = from; k < to; k++) {
        __m512bh there[2];
#pragma GCC unroll 2
        for (int j = 0; j < lanes; j++) there[j] = (__m512bh)_mm512_loadu_si512(b + (int64_t)k * columns + 16 * j);
#pragma GCC unroll 8
        for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 2
            for (int j = 0; j < lanes; j++)
                acc[i][j] = _mm512_dpbf16_ps(acc[i][j], (__m512bh)_mm512_set1_epi32((int)a[i][k]), there[j]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 2
        for (int j = 0; j < lanes; j++) _mm512_storeu_ps(out + (int64_t)i * out_columns + 16 * j, acc[i][j]);
}

/* ROWS rows of words times interleaved rows, over words `from` to `to`, into `out`; rows beyond `rows` repeat the last */
static void multiply(const half *in, int64_t stride, int rows, const uint32_t *b, int columns, int used, int from,
                     int to, float *out, int out_columns) {
    const uint32_t *a[ROWS];
    for (int i = 0; i < ROWS; i++) a[i] = (const uint32_t *)(in + least(i, rows - 1) * stride);
    int c = 0;
    for (; c + 32 <= used; c += 32) block(2, a, b + c, columns, from, to, out + c, out_columns);
    if (c < used) block(1, a, b + c, columns, from, to, out + c, out_columns);
}

/* ---- attention ---- */

typedef struct {
    half *at;
    int64_t row, head, token; /* from one to the next, in numbers; a head's numbers lie side by side */
} Side;

typedef struct {
    Side q, k, v, out;          /* backward: `out` is the gradient of the output */
    Side dq, dk, dv;
    half *weights;              /* (B, H, T, wide S) */
    const float *added;         /* (B or 1, T, S): the mask as numbers; none: all is seen, or what `causal` says */
    const uint8_t *blind;       /* (B or 1, T): queries that see nothing; none: no such query */
    int64_t added_row, blind_row;
    int32_t rows, heads, key_heads, queries, keys, key_width, value_width, causal, threads;
    float scale;
} Attention;

INLINE half *side(const Side *s, int row, int head) { return s->at + row * s->row + head * s->head; }

/* the distribution of one query: scores in, weights out, zeros from `seen` on */
static void distribute(float *scores, int seen, int wide, const float *added, float scale, int blind, half *weights) {
    F most = every(-INFINITY), total = {};
    __mmask16 strange = 0;
    for (int s = 0; s < seen; s += 16) {
        F x = AT(scores + s) * scale;
        const __mmask16 real = first_of(seen - s);
        if (added) x += (F)_mm512_maskz_loadu_ps(real, added + s);
        x = (F)_mm512_mask_mov_ps(_mm512_set1_ps(-INFINITY), real, (__m512)x);
        PUT(scores + s) = x;
        most = bigger(most, x);
        strange |= not_numbers(x);
    }
    const float top = largest(most);
    if (blind || strange || top == -INFINITY) {
        for (int s = 0; s < wide; s++) weights[s] = strange && !blind && s < seen ? NOT_A_NUMBER : 0;
        return;
    }
    for (int s = 0; s < seen; s += 16) {
        const F x = AT(scores + s);
        F e = exponential(x - top);
        e = (F)_mm512_mask_mov_ps((__m512)e, _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(-INFINITY), _CMP_EQ_OQ),
                                  _mm512_setzero_ps());
        PUT(scores + s) = e;
        total += e;
    }
    const float by = 1.0f / sum(total);
    int s = 0;
    for (; s < seen; s += 16) to_half(weights + s, AT(scores + s) * by);
    if (s < wide) memset(weights + s, 0, sizeof(half) * (wide - s));
}

static void put_rows(half *out, int64_t stride, int rows, int columns, const float *in) {
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c += 16) to_half(out + r * stride + c, AT(in + (int64_t)r * columns + c));
}

void regard_attend(const Attention *a) {
    const int T = a->queries, S = a->keys, K = a->key_width, V = a->value_width, wide = rounded(S, 16);
    const int shared = a->heads / a->key_heads, tasks = a->rows * a->key_heads;
    const int64_t size = (int64_t)tasks * shared * T * (S + K);
#pragma omp parallel num_threads(a->threads) if (size > PARALLEL)
    {
        uint32_t *keys = aligned_alloc(64, sizeof(uint32_t) * (K / 2 * wide + wide / 2 * V));
        uint32_t *values = keys + K / 2 * wide;
        const int widest = wide > V ? wide : V;
        float *scores = aligned_alloc(64, sizeof(float) * ROWS * widest);
#pragma omp for schedule(static)
        for (int task = 0; task < tasks; task++) {
            const int b = task / a->key_heads, g = task % a->key_heads;
            turned((const uint32_t *)side(&a->k, b, g), a->k.token / 2, S, K / 2, keys, wide);
            interleaved(side(&a->v, b, g), a->v.token, S, V, values);
            for (int h = g * shared; h < (g + 1) * shared; h++) {
                const half *q = side(&a->q, b, h);
                half *out = side(&a->out, b, h), *weights = a->weights + ((int64_t)b * a->heads + h) * T * wide;
                for (int t = 0; t < T; t += ROWS) {
                    const int rows = least(ROWS, T - t), seen = a->causal ? least(S, t + rows) : S;
                    multiply(q + t * a->q.token, a->q.token, rows, keys, wide, rounded(seen, 16), 0, K / 2, scores, wide);
                    for (int r = 0; r < rows; r++)
                        distribute(scores + r * wide, a->causal ? least(S, t + r + 1) : S, wide,
                                   a->added ? a->added + b * a->added_row + (int64_t)(t + r) * S : 0, a->scale,
                                   a->blind && a->blind[b * a->blind_row + t + r], weights + (int64_t)(t + r) * wide);
                    multiply(weights + (int64_t)t * wide, wide, rows, values, V, V, 0, (seen + 1) / 2, scores, V);
                    put_rows(out + t * a->out.token, a->out.token, rows, V, scores);
                }
            }
        }
        free(scores);
        free(keys);
    }
}

/* rows of words with rows and columns changed: (rows, columns) of bf16 as words along the rows, (columns, rows/2) */
static void across(const half *in, int rows, int columns, uint32_t *pairs, uint32_t *out, int64_t out_stride) {
    interleaved(in, columns, rows, columns, pairs);
    turned(pairs, columns, (rows + 1) / 2, columns, out, out_stride);
}

void regard_attend_back(const Attention *a) {
    const int T = a->queries, S = a->keys, K = a->key_width, V = a->value_width, wide = rounded(S, 16);
    const int shared = a->heads / a->key_heads, tasks = a->rows * a->key_heads, words = rounded((T + 1) / 2, 16);
    const int64_t size = (int64_t)tasks * shared * T * (S + K);
    const int widest = wide > V ? (wide > K ? wide : K) : (V > K ? V : K), keys_round = rounded(S, ROWS);
#pragma omp parallel num_threads(a->threads) if (size > PARALLEL)
    {
        uint32_t *values = aligned_alloc(64, sizeof(uint32_t) * ((V / 2) * wide + wide / 2 * K));
        uint32_t *keys = values + V / 2 * wide;
        uint32_t *queries = aligned_alloc(64, sizeof(uint32_t) * words * (K + V)), *given = queries + words * K;
        uint32_t *pairs = aligned_alloc(64, sizeof(uint32_t) * words * wide);
        uint32_t *turned_weights = aligned_alloc(64, sizeof(uint32_t) * 2 * wide * words);
        uint32_t *turned_scores = turned_weights + wide * words;
        half *d_scores = aligned_alloc(64, rounded(sizeof(half) * T * wide, 64));
        float *work = aligned_alloc(64, sizeof(float) * ROWS * widest);
        float *sums_k = aligned_alloc(64, sizeof(float) * keys_round * (K + V)), *sums_v = sums_k + keys_round * K;
#pragma omp for schedule(static)
        for (int task = 0; task < tasks; task++) {
            const int b = task / a->key_heads, g = task % a->key_heads;
            turned((const uint32_t *)side(&a->v, b, g), a->v.token / 2, S, V / 2, values, wide);
            interleaved(side(&a->k, b, g), a->k.token, S, K, keys);
            for (int h = g * shared; h < (g + 1) * shared; h++) {
                const half *q = side(&a->q, b, h), *from = side(&a->out, b, h);
                const half *weights = a->weights + ((int64_t)b * a->heads + h) * T * wide;
                interleaved(q, a->q.token, T, K, queries);
                interleaved(from, a->out.token, T, V, given);
                for (int t = 0; t < T; t += ROWS) {
                    const int rows = least(ROWS, T - t), seen = a->causal ? least(S, t + rows) : S;
                    multiply(from + t * a->out.token, a->out.token, rows, values, wide, rounded(seen, 16), 0, V / 2, work,
                             wide);
                    for (int r = 0; r < rows; r++) { /* d_scores = weights * (d_weights - their mean) * scale */
                        const half *w = weights + (int64_t)(t + r) * wide;
                        float *d = work + r * wide;
                        half *out = d_scores + (int64_t)(t + r) * wide;
                        F mean = {};
                        for (int s = 0; s < seen; s += 16) mean += from_half(w + s) * AT(d + s);
                        const float middle = sum(mean);
                        int s = 0;
                        for (; s < seen; s += 16) to_half(out + s, from_half(w + s) * (AT(d + s) - middle) * a->scale);
                        if (s < wide) memset(out + s, 0, sizeof(half) * (wide - s));
                    }
                    multiply(d_scores + (int64_t)t * wide, wide, rows, keys, K, K, 0, (seen + 1) / 2, work, K);
                    put_rows(side(&a->dq, b, h) + t * a->dq.token, a->dq.token, rows, K, work);
                }
                across(weights, T, wide, pairs, turned_weights, words);
                across(d_scores, T, wide, pairs, turned_scores, words);
                for (int s = 0; s < S; s += ROWS) {
                    const int rows = least(ROWS, S - s), first = a->causal ? s / 2 : 0;
                    const int last = h == (g + 1) * shared - 1;
                    for (int part = 0; part < 2; part++) {
                        const int width = part ? V : K;
                        const half *left = (const half *)((part ? turned_weights : turned_scores) + (int64_t)s * words);
                        const float *total = work;
                        multiply(left, 2 * words, rows, part ? given : queries, width, width, first, (T + 1) / 2, work, width);
                        if (shared > 1) {
                            float *so_far = (part ? sums_v : sums_k) + (int64_t)s * width;
                            if (h == g * shared) memset(so_far, 0, sizeof(float) * rows * width);
                            for (int i = 0; i < rows * width; i += 16) PUT(so_far + i) = AT(so_far + i) + AT(work + i);
                            total = so_far;
                        }
                        const Side *to = part ? &a->dv : &a->dk;
                        if (last) put_rows(side(to, b, g) + s * to->token, to->token, rows, width, total);
                    }
                }
            }
        }
        free(sums_k);
        free(work);
        free(d_scores);
        free(turned_weights);
        free(pairs);
        free(queries);
        free(values);
    }
}

/* ---- layer norm, and without beta RMS norm ---- */

INLINE F beta_at(const half *beta, int i) { return beta ? from_half(beta + i) : (F){}; }

/* rows of `width` numbers; `kept` gets each row's mean (0 of RMS norm) and 1/deviation */
void regard_norm(const half *x, const half *gamma, const half *beta, half *y, float *kept, int64_t rows, int32_t width,
                 float epsilon, int32_t threads) {
#pragma omp parallel for num_threads(threads) schedule(static) if (rows * width > PARALLEL)
    for (int64_t r = 0; r < rows; r++) {
        const half *in = x + r * width;
        F total = {}, square = {};
        for (int i = 0; i < width; i += 16) total += from_half(in + i);
        const float mean = beta ? sum(total) / width : 0;
        for (int i = 0; i < width; i += 16) {
            const F c = from_half(in + i) - mean;
            square += c * c;
        }
        const float by = 1.0f / sqrtf(sum(square) / width + epsilon);
        for (int i = 0; i < width; i += 16)
            to_half(y + r * width + i, (from_half(in + i) - mean) * by * from_half(gamma + i) + beta_at(beta, i));
        kept[2 * r] = mean;
        kept[2 * r + 1] = by;
    }
}

/* `d_weights` is (threads, 2, width) of zeros: each thread's share of the gradients of gamma and beta */
void regard_norm_back(const half *x, const half *gamma, const half *g, const float *kept, half *dx, float *d_weights,
                      int64_t rows, int32_t width, int32_t centred, int32_t threads) {
#pragma omp parallel for num_threads(threads) schedule(static) if (rows * width > PARALLEL)
    for (int part = 0; part < threads; part++) {
        float *d_gamma = d_weights + 2 * (int64_t)part * width, *d_beta = d_gamma + width;
        for (int64_t r = rows * part / threads; r < rows * (part + 1) / threads; r++) {
            const half *in = x + r * width, *from = g + r * width;
            const float mean = kept[2 * r], by = kept[2 * r + 1];
            F along = {}, total = {};
            for (int i = 0; i < width; i += 16) {
                const F n = (from_half(in + i) - mean) * by, d = from_half(from + i), scaled = d * from_half(gamma + i);
                along += scaled * n;
                total += scaled;
                PUT(d_gamma + i) = AT(d_gamma + i) + d * n;
                PUT(d_beta + i) = AT(d_beta + i) + d;
            }
            const float a = sum(along) / width, t = centred ? sum(total) / width : 0;
            for (int i = 0; i < width; i += 16) {
                const F n = (from_half(in + i) - mean) * by;
                to_half(dx + r * width + i, (from_half(from + i) * from_half(gamma + i) - n * a - t) * by);
            }
        }
    }
}

/* ---- GELU ---- */

/* the share of the normal distribution below x, to 1e-7 (Abramowitz & Stegun 7.1.26), and its density */
INLINE F normal(F x, F *density) {
    const F e = exponential(x * x * -0.5f);
    *density = e * 0.3989422804014327f;
    const F z = (F)_mm512_abs_ps((__m512)x) * 0.7071067811865476f, below_t = z * 0.3275911f + 1.0f;
    F t = (F)_mm512_rcp14_ps((__m512)below_t); /* 1/below_t to 14 bits, and by a step of Newton's to all */
    t = t * (2.0f - below_t * t);
    const F tail = ((((t * 1.061405429f - 1.453152027f) * t + 1.421413741f) * t - 0.284496736f) * t + 0.254829592f) * t * e;
    const __mmask16 below = _mm512_cmp_ps_mask((__m512)x, _mm512_setzero_ps(), _CMP_LT_OQ);
    return (F)_mm512_mask_mov_ps((__m512)(1.0f - 0.5f * tail), below, (__m512)(0.5f * tail));
}

/* y = x Φ(x), and if there is room for it the slope Φ(x) + x φ(x) */
void regard_gelu(const half *x, half *y, half *slope, int64_t count, int32_t threads) {
#pragma omp parallel for num_threads(threads) schedule(static) if (count > PARALLEL)
    for (int64_t i = 0; i < count; i += 16) {
        const __mmask16 real = first_of((int)(count - i < 16 ? count - i : 16));
        const F in = from_half_some(x + i, real);
        F density;
        const F below = normal(in, &density);
        to_half_some(y + i, in * below, real);
        if (slope) to_half_some(slope + i, below + in * density, real);
    }
}

/* ---- dropout ---- */

/* bits without a pattern from numbers that count on (lowbias32, by C. Wellons, twice, each with half of the seed) */
INLINE __m512i scattered(__m512i x, uint64_t seed) {
#pragma GCC unroll 2
    for (int turn = 0; turn < 2; turn++) {
        x = _mm512_xor_si512(x, _mm512_set1_epi32((int)(seed >> (32 * turn))));
        x = _mm512_mullo_epi32(_mm512_xor_si512(x, _mm512_srli_epi32(x, 16)), _mm512_set1_epi32(0x7feb352d));
        x = _mm512_mullo_epi32(_mm512_xor_si512(x, _mm512_srli_epi32(x, 15)), _mm512_set1_epi32((int)0x846ca68b));
        x = _mm512_xor_si512(x, _mm512_srli_epi32(x, 16));
    }
    return x;
}

/* out = x + h, of h what 16 random bits reach the threshold, scaled; without x that alone. A seed is a mask: none is kept */
void regard_drop(const half *x, const half *h, half *out, int64_t count, int64_t seed, int32_t threshold, float scale,
                 int32_t threads) {
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#pragma omp parallel for num_threads(threads) schedule(static) if (count > PARALLEL)
    for (int64_t i = 0; i < count; i += 32) {
        const __m512i bits = scattered(_mm512_add_epi32(lanes, _mm512_set1_epi32((int)(i / 2))), (uint64_t)seed);
        const __mmask32 kept = _mm512_cmpge_epu16_mask(bits, _mm512_set1_epi16((short)threshold));
        for (int part = 0; part < 2; part++) {
            const int64_t at = i + 16 * part;
            const __mmask16 real = first_of((int)(count - at < 16 ? count - at : 16));
            F y = (F)_mm512_maskz_mov_ps((__mmask16)(kept >> (16 * part)), (__m512)(from_half_some(h + at, real) * scale));
            if (x) y += from_half_some(x + at, real);
            to_half_some(out + at, y, real);
        }
    }
}

/* ---- softmax of the loss ---- */

/* in place, rows of logits to probabilities; `told` gets the log of each row's sum of exponentials */
void regard_softmax(half *x, float *told, int64_t rows, int32_t width, int32_t threads) {
#pragma omp parallel num_threads(threads) if (rows * width > PARALLEL)
    {
        float *powers = aligned_alloc(64, sizeof(float) * rounded(width, 16));
#pragma omp for schedule(static)
        for (int64_t r = 0; r < rows; r++) {
            half *row = x + r * width;
            F most[2] = {every(-INFINITY), every(-INFINITY)}, total[2] = {};
            __mmask16 strange = 0;
            for (int i = 0; i < width; i += 16) {
                const __mmask16 real = first_of(width - i);
                const F here = (F)_mm512_mask_mov_ps(_mm512_set1_ps(-INFINITY), real, (__m512)from_half_some(row + i, real));
                most[i / 16 % 2] = bigger(most[i / 16 % 2], here);
                strange |= not_numbers(here);
            }
            const float top = largest(bigger(most[0], most[1]));
            if (strange || top == -INFINITY) {
                for (int i = 0; i < width; i++) row[i] = NOT_A_NUMBER;
                told[r] = NAN;
                continue;
            }
            for (int i = 0; i < width; i += 16) {
                const __mmask16 real = first_of(width - i);
                const F e = (F)_mm512_maskz_mov_ps(real, (__m512)exponential(from_half_some(row + i, real) - top));
                PUT(powers + i) = e;
                total[i / 16 % 2] += e;
            }
            const float all = sum(total[0] + total[1]), by = 1.0f / all;
            for (int i = 0; i < width; i += 16) to_half_some(row + i, AT(powers + i) * by, first_of(width - i));
            told[r] = top + logf(all);
        }
        free(powers);
    }
}

#endif
