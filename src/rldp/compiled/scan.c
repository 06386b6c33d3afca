/* Records of CSV text to numbers of labels: the loop of tables/plain_csv.py.

   A field is bare, without delimiters, quotes and line ends in it, or in quotes, with quotes
   inside it doubled. The scan stops at the first record that is anything else. Fields are read in
   words of 8 bytes, the first of which is the lowest; so there must be 8 more bytes after a text. */
#include <string.h>

#include "loops.h"

#define ROOM 8
#define MOST_COLUMNS 255
#define MOST_LABELS 2048
#define MOST_BYTES (1 << 18) /* of all labels of a column */
#define SLOT_BITS 13
#define MOST_PROBES 64 /* slots in which a label is sought; texts may be made to collide */
#define FACTOR 0x9E3779B97F4A7C15u /* odd, with bits that look random: the golden ratio's */
#define BYTES 0x0101010101010101u  /* times a byte: a word of it */

typedef struct {
    uint64_t hash;
    uint32_t start, length; /* in texts */
} Label;

typedef struct {
    uint32_t n_labels, n_bytes;
    uint16_t slots[1 << SLOT_BITS]; /* the number of a label plus 1; 0 in an empty slot */
    Label labels[MOST_LABELS];
    char texts[MOST_BYTES + ROOM]; /* as they are written */
} Column;

typedef struct {
    Py_ssize_t n;
    Column columns[];
} Lists;

static const char lists_name[] = "rldp label lists";

static uint64_t word_at(const char *text) {
    const unsigned char *b = (const unsigned char *)text;
    return (uint64_t)b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 | (uint64_t)b[3] << 24 |
           (uint64_t)b[4] << 32 | (uint64_t)b[5] << 40 | (uint64_t)b[6] << 48 |
           (uint64_t)b[7] << 56;
}

/* The first bytes of a text as a word, 0 after its end. */
static uint64_t first_bytes(const char *text, Py_ssize_t length) {
    uint64_t word = word_at(text);
    return length < 8 ? word & (((uint64_t)1 << 8 * length) - 1) : word;
}

static uint64_t hash_of(const char *text, Py_ssize_t length) {
    uint64_t hash = (uint64_t)length;
    for (Py_ssize_t i = 0; i < length; i += 8)
        hash = (hash ^ hash >> 32 ^ first_bytes(text + i, length - i)) * FACTOR;
    return hash;
}

static int is_same(const char *text, const char *other, Py_ssize_t length) {
    for (Py_ssize_t i = 0; i < length; i += 8)
        if (first_bytes(text + i, length - i) != first_bytes(other + i, length - i)) return 0;
    return 1;
}

/* The number of a label, which is new if it is not listed yet; -1 if there is no room for it. */
static int32_t number_of(Column *column, const char *text, Py_ssize_t length) {
    uint64_t hash = hash_of(text, length), slot = hash >> (64 - SLOT_BITS);
    for (int probe = 0; probe < MOST_PROBES; probe++, slot = (slot + 1) % (1 << SLOT_BITS)) {
        uint32_t listed_as = column->slots[slot], n = column->n_labels;
        if (listed_as) {
            const Label *label = &column->labels[listed_as - 1];
            if (label->hash == hash && label->length == length &&
                is_same(text, column->texts + label->start, length))
                return (int32_t)listed_as - 1;
            continue;
        }
        if (n == MOST_LABELS || length > MOST_BYTES - (Py_ssize_t)column->n_bytes) return -1;
        memcpy(column->texts + column->n_bytes, text, (size_t)length);
        column->labels[n] = (Label){hash, column->n_bytes, (uint32_t)length};
        column->n_bytes += (uint32_t)length;
        column->slots[slot] = (uint16_t)++column->n_labels;
        return (int32_t)n;
    }
    return -1;
}

/* The highest bit of each byte that is 0, and perhaps of bytes above one that is. */
static uint64_t zero_bytes(uint64_t word) { return (word - BYTES) & ~word & BYTES << 7; }

/* How many bytes are below the lowest one that has its highest bit set; one must have it. */
static int bytes_below(uint64_t bits) {
#if defined(__GNUC__) /* one instruction, on which the next field waits */
    return __builtin_ctzll(bits) >> 3;
#else
    return (int)(((bits - 1) & ~bits & BYTES) * BYTES >> 56) - 1;
#endif
}

typedef struct {
    const char *end;
    const unsigned char *column_of; /* for each field its wanted column, plus 1, or 0 */
    Py_ssize_t width, capacity;
    Lists *lists;
    int32_t *numbers;
    uint64_t delimiters; /* a word of them */
    char delimiter;
} Scan;

enum { RECORD, PART_OF_ONE, IRREGULAR };

/* Where a bare field stops, at a mark; the end of the text if there is none. */
static const char *after_bare(const Scan *scan, const char *at) {
    for (; at < scan->end; at += 8) {
        uint64_t word = word_at(at);
        uint64_t marks = (zero_bytes(word ^ scan->delimiters) | zero_bytes(word ^ '"' * BYTES)) |
                         (zero_bytes(word ^ '\n' * BYTES) | zero_bytes(word ^ '\r' * BYTES));
        if (marks) {
            at += bytes_below(marks);
            if (at < scan->end) return at;
        }
    }
    return scan->end;
}

/* Where a field in quotes stops, after its last one; the end if the next byte may be a quote. */
static const char *after_quoted(const Scan *scan, const char *at) {
    for (at++; at < scan->end;) {
        uint64_t quotes = zero_bytes(word_at(at) ^ '"' * BYTES);
        if (!quotes) {
            at += 8;
            continue;
        }
        at += bytes_below(quotes) + 1;
        if (at >= scan->end) break;
        if (*at != '"') return at;
        at++;
    }
    return scan->end;
}

/* Number the labels of the record at `*at`, and go to the next one. */
static int next_record(const Scan *scan, const char **at, Py_ssize_t record) {
    const char *starts[MOST_COLUMNS], *stops[MOST_COLUMNS], *start = *at, *stop = start;
    for (Py_ssize_t field = 0; field < scan->width; field++, start = stop + 1) {
        int is_quoted = start < scan->end && *start == '"';
        stop = is_quoted ? after_quoted(scan, start) : after_bare(scan, start);
        if (stop == scan->end) return PART_OF_ONE;
        if (field + 1 < scan->width && *stop != scan->delimiter) return IRREGULAR;
        unsigned column = scan->column_of[field];
        if (column) {
            starts[column - 1] = start;
            stops[column - 1] = stop;
        }
    }
    const char *line_end = stop + (*stop == '\r');
    if (line_end == scan->end) return PART_OF_ONE;
    if (*line_end != '\n' || (scan->width == 1 && stop == *at)) return IRREGULAR;
    for (Py_ssize_t k = 0; k < scan->lists->n; k++) {
        int32_t number = number_of(&scan->lists->columns[k], starts[k], stops[k] - starts[k]);
        if (number < 0) return IRREGULAR;
        scan->numbers[k * scan->capacity + record] = number;
    }
    *at = line_end + 1;
    return RECORD;
}

/* Whether each column has exactly one field. */
static int is_complete(const unsigned char *column_of, Py_ssize_t width, Py_ssize_t n_columns) {
    unsigned char is_found[MOST_COLUMNS + 1] = {0};
    Py_ssize_t n_found = 0;
    for (Py_ssize_t i = 0; i < width; i++) {
        if (!column_of[i]) continue;
        if (column_of[i] > n_columns || is_found[column_of[i]]++) return 0;
        n_found++;
    }
    return n_found == n_columns;
}

/* scan(lists, text, size, delimiter, column_of, numbers) */
PyObject *scan(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    if (!is_called_with("scan", 6, count)) return NULL;
    Lists *lists = PyCapsule_GetPointer(args[0], lists_name);
    Py_ssize_t size, delimiter;
    if (!lists || !is_integer(args[2], 0, PY_SSIZE_T_MAX - ROOM, &size) ||
        !is_integer(args[3], 1, 127, &delimiter))
        return NULL;
    if (!PyBytes_Check(args[4])) { /* which nobody changes meanwhile */
        PyErr_SetString(PyExc_TypeError, "expected column_of as bytes");
        return NULL;
    }
    const unsigned char *column_of = (const unsigned char *)PyBytes_AsString(args[4]);
    Arrays arrays = {.count = 0};
    PyObject *result = NULL;
    Py_buffer *text, *numbers;
    if (!(text = contiguous(&arrays, args[1], 1, 0)) ||
        !(numbers = contiguous(&arrays, args[5], 4, 1)))
        goto end;
    if (size > text->len - ROOM || !is_complete(column_of, PyBytes_Size(args[4]), lists->n)) {
        PyErr_SetString(PyExc_ValueError, "scan got too little room, or columns without a field");
        goto end;
    }
    const char *start = text->buf, *at = start;
    Scan state = {start + size, column_of, PyBytes_Size(args[4]), numbers->len / 4 / lists->n,
                  lists, numbers->buf, (uint64_t)delimiter * BYTES, (char)delimiter};
    Py_ssize_t records = 0;
    int found = RECORD;
    while (at < state.end && records < state.capacity &&
           (found = next_record(&state, &at, records)) == RECORD)
        records++;
    result = Py_BuildValue("nnO", records, (Py_ssize_t)(at - start),
                           found == IRREGULAR ? Py_False : Py_True);
end:
    release(&arrays);
    return result;
}

static void free_lists(PyObject *capsule) { PyMem_Free(PyCapsule_GetPointer(capsule, lists_name)); }

/* label_lists(columns) */
PyObject *label_lists(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    Py_ssize_t n;
    if (!is_called_with("label_lists", 1, count) || !is_integer(args[0], 1, MOST_COLUMNS, &n))
        return NULL;
    Lists *lists = PyMem_Calloc(1, sizeof(Lists) + (size_t)n * sizeof(Column));
    if (!lists) return PyErr_NoMemory();
    lists->n = n;
    PyObject *capsule = PyCapsule_New(lists, lists_name, free_lists);
    if (!capsule) PyMem_Free(lists);
    return capsule;
}

/* listed(lists, column, first) */
PyObject *listed(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    if (!is_called_with("listed", 3, count)) return NULL;
    const Lists *lists = PyCapsule_GetPointer(args[0], lists_name);
    Py_ssize_t place, first;
    if (!lists || !is_integer(args[1], 0, lists->n - 1, &place)) return NULL;
    const Column *column = &lists->columns[place];
    if (!is_integer(args[2], 0, column->n_labels, &first)) return NULL;
    Py_ssize_t n = (Py_ssize_t)column->n_labels - first;
    PyObject *labels = PyList_New(n);
    for (Py_ssize_t i = 0; labels && i < n; i++) {
        const Label *label = &column->labels[first + i];
        PyObject *text = PyBytes_FromStringAndSize(column->texts + label->start, label->length);
        if (!text || PyList_SetItem(labels, i, text) < 0) Py_CLEAR(labels);
    }
    return labels;
}
