/* Indices of dictionaries to counts of cells: the loop of tables/combinations.py. */
#include <string.h>

#include "loops.h"

#define ARGUMENTS 4 /* of a column */
#define MOST_COLUMNS ((MOST_ARRAYS - 1) / 3)
#define BLOCK 1024 /* records whose cells stay in the nearest cache */

typedef struct {
    const char *indices;
    Py_ssize_t itemsize;
    const unsigned char *valid; /* a bit for each index, the lowest first; NULL if all are valid */
    Py_ssize_t first_bit;
    const uint64_t *parts; /* of a cell: those of the entries, and that of a missing value */
    uint64_t missing, limit;
} Column;

/* Add the parts of n records to their cells; 0 where an index is out of range. Indices are read
   once, as volatile ones: if another thread changes them, what was checked is what is used. */
#define ADD(NAME, INDEX)                                                                     \
    static int NAME(const Column *column, Py_ssize_t start, Py_ssize_t n, uint64_t *cells) { \
        const volatile INDEX *indices = (const volatile INDEX *)column->indices + start;     \
        const unsigned char *valid = column->valid;                                          \
        const uint64_t *parts = column->parts, limit = column->limit;                        \
        size_t bit = (size_t)(column->first_bit + start);                                    \
        for (Py_ssize_t i = 0; i < n; i++, bit++) {                                          \
            uint64_t index = indices[i];                                                     \
            if (valid && !(valid[bit / 8] >> bit % 8 & 1))                                   \
                index = column->missing;                                                     \
            else if (index >= limit)                                                         \
                return 0;                                                                    \
            cells[i] += parts[index];                                                        \
        }                                                                                    \
        return 1;                                                                            \
    }

ADD(add_bytes, uint8_t)
ADD(add_shorts, uint16_t)
ADD(add_ints, uint32_t)
ADD(add_longs, uint64_t)

static int add(const Column *column, Py_ssize_t start, Py_ssize_t n, uint64_t *cells) {
    switch (column->itemsize) {
        case 1: return add_bytes(column, start, n, cells);
        case 2: return add_shorts(column, start, n, cells);
        case 4: return add_ints(column, start, n, cells);
        default: return add_longs(column, start, n, cells);
    }
}

/* Take the arguments of a column: indices, valid, first_bit and parts. Returns its length, -1 with
   an error if they do not fit. */
static Py_ssize_t taken(Arrays *arrays, PyObject *const *args, Column *column) {
    Py_buffer *indices, *valid = NULL, *parts;
    if (!(indices = contiguous(arrays, args[0], 0, 0)) ||
        (args[1] != Py_None && !(valid = contiguous(arrays, args[1], 1, 0))) ||
        !is_integer(args[2], 0, PY_SSIZE_T_MAX / 2, &column->first_bit) ||
        !(parts = contiguous(arrays, args[3], 8, 0)))
        return -1;
    uint64_t n = (uint64_t)(indices->len / indices->itemsize);
    if (!parts->len ||
        (valid && ((uint64_t)column->first_bit + n + 7) / 8 > (uint64_t)valid->len)) {
        PyErr_SetString(PyExc_ValueError, "count got sizes that do not fit together");
        return -1;
    }
    column->indices = indices->buf;
    column->itemsize = indices->itemsize;
    column->valid = valid ? valid->buf : NULL;
    column->parts = parts->buf;
    column->missing = column->limit = (uint64_t)parts->len / 8 - 1;
    if (indices->format && strchr("bhilq", *indices->format)) { /* negative ones look large */
        uint64_t least_negative = (uint64_t)1 << (8 * indices->itemsize - 1);
        if (column->limit > least_negative) column->limit = least_negative;
    }
    return (Py_ssize_t)n;
}

/* Returns how many records were counted: all, or some of those before the first one whose index or
   cell is out of range. */
static Py_ssize_t counted(const Column *columns, Py_ssize_t width, Py_ssize_t n, int64_t *counts,
                          uint64_t n_cells) {
    uint64_t cells[BLOCK];
    for (Py_ssize_t start = 0; start < n; start += BLOCK) {
        Py_ssize_t size = n - start < BLOCK ? n - start : BLOCK;
        memset(cells, 0, sizeof cells);
        for (Py_ssize_t k = 0; k < width; k++)
            if (!add(&columns[k], start, size, cells)) return start;
        for (Py_ssize_t i = 0; i < size; i++) {
            if (cells[i] >= n_cells) return start + i;
            counts[cells[i]]++;
        }
    }
    return n;
}

/* count(counts, indices, valid, first_bit, parts, ...) */
PyObject *count(PyObject *module, PyObject *const *args, Py_ssize_t n_args) {
    (void)module;
    Py_ssize_t width = (n_args - 1) / ARGUMENTS, n = 0;
    if (n_args < 1 || (n_args - 1) % ARGUMENTS || width < 1 || width > MOST_COLUMNS) {
        PyErr_Format(PyExc_TypeError,
                     "count takes 1 argument and %d for each of 1 to %d columns, got %zd", ARGUMENTS,
                     MOST_COLUMNS, n_args);
        return NULL;
    }
    Arrays arrays = {.count = 0};
    Column columns[MOST_COLUMNS];
    Py_ssize_t found = -1;
    Py_buffer *counts = contiguous(&arrays, args[0], 8, 1);
    if (!counts) goto end;
    for (Py_ssize_t k = 0; k < width; k++) {
        Py_ssize_t length = taken(&arrays, args + 1 + k * ARGUMENTS, &columns[k]);
        if (length < 0) goto end;
        if (k && length != n) {
            PyErr_SetString(PyExc_ValueError, "count got columns of different lengths");
            goto end;
        }
        n = length;
    }
    found = counted(columns, width, n, counts->buf, (uint64_t)counts->len / 8);
end:
    release(&arrays);
    return found < 0 ? NULL : PyLong_FromSsize_t(found);
}
