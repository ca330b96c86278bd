/* Vectors of 16 numbers: plain C with an extension that gcc and clang share, and the processor's own instructions where it
 * has wide ones. What `fused.c` and the kernel that decodes have in common.
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

INLINE float sum(F x) {
#if defined(__AVX512F__)
    return _mm512_reduce_add_ps((__m512)x);
#else
    float total = 0;
    for (int i = 0; i < 16; i++) total += x[i];
    return total;
#endif
}

/* the sums of 16 vectors, as one: added in a tree, half of the places at a time */
INLINE F sums(const F *x) {
#if defined(__AVX512F__)
    __m512 half[8], quarter[4], eighth[2];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        const __m512 a = (__m512)x[2 * i], b = (__m512)x[2 * i + 1];
        half[i] = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const __m512d a = _mm512_castps_pd(half[2 * i]), b = _mm512_castps_pd(half[2 * i + 1]);
        quarter[i] = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)), _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        const __m512 a = quarter[2 * i], b = quarter[2 * i + 1];
        eighth[i] = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
    }
    return (F)_mm512_add_ps(
        _mm512_shuffle_f32x4(eighth[0], eighth[1], 0x88), _mm512_shuffle_f32x4(eighth[0], eighth[1], 0xdd));
#else
    F all = {};
    for (int i = 0; i < 16; i++) all[i] = sum(x[i]);
    return all;
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
#if defined(__AVX512F__)
    return (F)_mm512_scalef_ps((__m512)p, (__m512)whole);
#else
    I power = ((I)shifted - (I)every(magic) + 127) << 23;
    return p * (F)power;
#endif
}
