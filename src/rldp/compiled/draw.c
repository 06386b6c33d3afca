/* One word, one output of an alias table: the loop of AliasRows. */
#include "loops.h"

typedef struct {
    const uint64_t *limits;
    const void *pairs;
    int bucket_bits;
    const char *s, *u, *words;
    Py_ssize_t s_stride, u_stride, word_stride;
    uint64_t n_s, n_u;
    int64_t *out;
    Py_ssize_t n;
} Draw;

/* Pairs of outputs have 16, 32 or 64 bits: the item is the lower half, its alias the upper one.
   Returns how many records were drawn: fewer than n where a code is out of range. Codes are read
   once, as volatile ones: if another thread changes them, what was checked is still what is used. */
#define DRAW(NAME, PAIR, WIDTH)                                                                \
    static Py_ssize_t NAME(const Draw *d) {                                                    \
        const uint64_t *limits = d->limits;                                                    \
        const PAIR *pairs = d->pairs;                                                          \
        const uint64_t n_s = d->n_s, n_u = d->n_u, output = ((uint64_t)1 << WIDTH) - 1;        \
        const int bits = d->bucket_bits;                                                       \
        const char *s_at = d->s, *u_at = d->u, *word_at = d->words;                            \
        for (Py_ssize_t i = 0; i < d->n; i++) {                                                \
            uint64_t s = *(const volatile uint64_t *)(s_at + i * d->s_stride);                 \
            uint64_t u = *(const volatile uint64_t *)(u_at + i * d->u_stride);                 \
            if (s >= n_s || u >= n_u) return i;                                                \
            uint64_t word = *(const uint64_t *)(word_at + i * d->word_stride);                 \
            uint64_t bucket = (s * n_u + u) << bits | word >> (64 - bits);                     \
            d->out[i] = (int64_t)(pairs[bucket] >> WIDTH * (word >= limits[bucket]) & output); \
        }                                                                                      \
        return d->n;                                                                           \
    }

DRAW(draw_bytes, uint16_t, 8)
DRAW(draw_shorts, uint32_t, 16)
DRAW(draw_longs, uint64_t, 32)

/* draw(limits, pairs, bucket_bits, s, n_s, u, n_u, words, out) */
PyObject *draw(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    if (!is_called_with("draw", 9, count)) return NULL;
    Py_ssize_t bits, n_s, n_u;
    if (!is_integer(args[2], 1, 62, &bits) || !is_integer(args[4], 1, PY_SSIZE_T_MAX, &n_s) ||
        !is_integer(args[6], 1, PY_SSIZE_T_MAX, &n_u))
        return NULL;
    Arrays arrays = {.count = 0};
    Py_buffer *limits, *pairs, *s, *u, *words, *out;
    Py_ssize_t drawn = -1;
    if (!(limits = contiguous(&arrays, args[0], 8, 0)) ||
        !(pairs = contiguous(&arrays, args[1], 0, 0)) || !(s = strided(&arrays, args[3])) ||
        !(u = strided(&arrays, args[5])) || !(words = strided(&arrays, args[7])) ||
        !(out = contiguous(&arrays, args[8], 8, 1)))
        goto end;
    Py_ssize_t n = s->shape[0], buckets = limits->len / 8;
    if (u->shape[0] != n || words->shape[0] != n || out->len / 8 != n ||
        pairs->len / pairs->itemsize != buckets || n_s > (buckets >> bits) / n_u) {
        PyErr_SetString(PyExc_ValueError, "draw got sizes that do not fit together");
        goto end;
    }
    Draw d = {limits->buf, pairs->buf, (int)bits, s->buf, u->buf, words->buf, s->strides[0],
              u->strides[0], words->strides[0], (uint64_t)n_s, (uint64_t)n_u, out->buf, n};
    switch (pairs->itemsize) {
        case 2: drawn = draw_bytes(&d); break;
        case 4: drawn = draw_shorts(&d); break;
        case 8: drawn = draw_longs(&d); break;
        default: PyErr_SetString(PyExc_ValueError, "expected pairs of 2, 4 or 8 bytes");
    }
end:
    release(&arrays);
    return drawn < 0 ? NULL : PyLong_FromSsize_t(drawn);
}
