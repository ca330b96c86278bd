/* Products of rows with packed weights, in float32, bf16 and int8: plain vectors of 16 numbers, the processor's own bf16
 * and int8 instructions where it has them, and its tiles (AMX) where it has those and the system lends them.
 */
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

/* the sums of 16 outputs from `n` on, scaled, with their bias */
INLINE F scaled(const int kind, const Linear *l, int n, I acc, float scale, int mode) {
    F x = (F)acc;
    if (kind == INT8) x = __builtin_convertvector(acc, F) * (AT(l->scale + n) * scale);
    x += AT(l->bias + n);
    return mode & WITH_RELU ? bigger(x, (F){}) : x;
}

/* put where they belong: `left` of them, if there are no more */
INLINE void settle(const int kind, const Linear *l, int n, I acc, float scale, float *place, int mode) {
    const int left = l->outputs - n;
    if (left <= 0) return;
    F x = scaled(kind, l, n, acc, scale, mode);
    if (left >= 16) {
        if (mode & ADD) x += AT(place);
        PUT(place) = x;
        return;
    }
    float some[16];
    PUT(some) = x;
    for (int i = 0; i < left; i++) place[i] = mode & ADD ? some[i] + place[i] : some[i];
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
    if (begin + PANEL > l->outputs) {
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
            for (int v = 0; v < LANES; v++)
                settle(kind, l, begin + 16 * v, acc[r][v], scales[r], out + r * width + begin + 16 * v, mode);
        return;
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
        float *place = out + r * width + begin;
#pragma GCC unroll 8
        for (int v = 0; v < LANES; v++) {
            F x = scaled(kind, l, begin + 16 * v, acc[r][v], scales[r], mode);
            if (mode & ADD) x += AT(place + 16 * v);
            PUT(place + 16 * v) = x;
        }
    }
}

/* all rows times a panel of weights */
INLINE void panel_of(const int kind, const Linear *l, int n, const uint32_t *a, const float *scales, int rows,
                     float *out, long width, int mode) {
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

#if defined(__AMX_TILE__) && defined(__AMX_BF16__) && defined(__AMX_INT8__) && defined(__linux__)
#define TILES 1
static int tiles_lent; /* asked for once, before any product */

typedef struct {
    uint8_t palette, start, unused[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} TileShape;

/* every tile: 16 rows of 16 words */
static void open_tiles(void) {
    TileShape shape = {.palette = 1};
    for (int i = 0; i < 8; i++) shape.bytes[i] = 64, shape.rows[i] = 16;
    if (tiles_lent) _tile_loadconfig(&shape);
}

static void close_tiles(void) {
    if (tiles_lent) _tile_release();
}

#define MULTIPLY_TILES(to, a, b) \
    if (kind == BFLOAT16) _tile_dpbf16ps(to, a, b); \
    else _tile_dpbusd(to, a, b)

/* rows of inputs (there is memory up to a multiple of 32) times a panel of weights, 32 rows and 32 outputs at a time:
 * the panel lies in memory as tiles want it, 16 words under each other for each of 16 outputs */
INLINE void tiled_panel(const int kind, const Linear *l, int n, const uint32_t *a, const float *scales, int rows,
                        float *out, long width, int mode) {
    const int words = l->words;
    const long row = 4L * words;
    I sums[4][16] __attribute__((aligned(64)));
    for (int r = 0; r < rows; r += 32) {
        const uint32_t *first = a + (long)r * words, *second = first + 16L * words;
        const int more = rows - r > 16;
        for (int half = 0; half < PANEL && n + half < l->outputs; half += 32) {
            const uint32_t *w = l->weight + (long)n * words + half;
            _tile_zero(0);
            _tile_zero(1);
            if (more) {
                _tile_zero(2);
                _tile_zero(3);
                for (int k = 0; k < words; k += 16, w += 16 * PANEL) {
                    _tile_loadd(4, first + k, row);
                    _tile_loadd(6, w, 4 * PANEL);
                    MULTIPLY_TILES(0, 4, 6);
                    _tile_loadd(7, w + 16, 4 * PANEL);
                    MULTIPLY_TILES(1, 4, 7);
                    _tile_loadd(5, second + k, row);
                    MULTIPLY_TILES(2, 5, 6);
                    MULTIPLY_TILES(3, 5, 7);
                }
                _tile_stored(2, sums[2], 64);
                _tile_stored(3, sums[3], 64);
            } else {
                for (int k = 0; k < words; k += 16, w += 16 * PANEL) {
                    _tile_loadd(4, first + k, row);
                    _tile_loadd(6, w, 4 * PANEL);
                    MULTIPLY_TILES(0, 4, 6);
                    _tile_loadd(7, w + 16, 4 * PANEL);
                    MULTIPLY_TILES(1, 4, 7);
                }
            }
            _tile_stored(0, sums[0], 64);
            _tile_stored(1, sums[1], 64);
            const int last = rows - r < 32 ? rows - r : 32;
            for (int i = 0; i < last; i++)
                for (int v = 0; v < 2; v++) {
                    const int place = n + half + 16 * v;
                    I acc = sums[i / 16 * 2 + v][i % 16];
                    if (kind == INT8) acc -= *(const I *)(l->offset + place);
                    settle(kind, l, place, acc, scales[r + i], out + (r + i) * width + place, mode);
                }
        }
    }
}
#else
#define TILES 0
enum { tiles_lent = 0 };
static void open_tiles(void) {}
static void close_tiles(void) {}
#endif

/* all rows times the outputs of one panel, put or added into rows of `width` numbers */
static void product_panel(int kind, const Linear *l, int n, const uint32_t *a, const float *scales, int rows, float *out,
                          long width, int mode) {
#if TILES
    if (tiles_lent && kind != FLOAT32 && l->words % 16 == 0) {
        if (kind == BFLOAT16) tiled_panel(BFLOAT16, l, n, a, scales, rows, out, width, mode);
        else tiled_panel(INT8, l, n, a, scales, rows, out, width, mode);
        return;
    }
#endif
    if (kind == FLOAT32) panel_of(FLOAT32, l, n, a, scales, rows, out, width, mode);
    else if (kind == BFLOAT16) panel_of(BFLOAT16, l, n, a, scales, rows, out, width, mode);
    else panel_of(INT8, l, n, a, scales, rows, out, width, mode);
}

/* rows of packed inputs times this thread's share of the weights' panels */
static void product(int kind, const Linear *l, const uint32_t *a, const float *scales, int rows, float *out, long width,
                    int mode, Team team) {
    const int panels = (l->outputs + PANEL - 1) / PANEL;
    for (int p = begin_of(team, panels); p < end_of(team, panels); p++)
        product_panel(kind, l, p * PANEL, a, scales, rows, out, width, mode);
}

/* one row of `n` numbers as the products take it; int8: rounded to 255 steps between minus and plus its largest */
INLINE void pack(int kind, const float *x, int n, uint32_t *to, float *scale) {
    if (kind == FLOAT32) {
        memcpy(to, x, 4 * (size_t)n);
    } else if (kind == BFLOAT16) {
        uint16_t *words = (uint16_t *)to;
        for (int i = 0; i < n; i += 16) {
#if defined(__AVX512BF16__)
            _mm256_storeu_si256((__m256i *)(words + i), (__m256i)_mm512_cvtneps_pbh((__m512)AT(x + i)));
#else
            I bits = *(const I *)(x + i);
            bits = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
            *(H16 *)(words + i) = __builtin_convertvector(bits, H16);
#endif
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

