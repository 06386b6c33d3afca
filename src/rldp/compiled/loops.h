/* What the loops share: the stable interface of Python 3.11, and arrays as arguments. */
#ifndef RLDP_LOOPS_H
#define RLDP_LOOPS_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdint.h>

/* The arrays of one call, released together. */
#define MOST_ARRAYS 64
typedef struct {
    Py_buffer views[MOST_ARRAYS];
    int count;
} Arrays;

/* An array of integers of `itemsize` bytes (0: any) in C order; NULL with an error. */
Py_buffer *contiguous(Arrays *arrays, PyObject *array, Py_ssize_t itemsize, int is_written);

/* The same for 64 bits, one dimension and any stride; it is only read. */
Py_buffer *strided(Arrays *arrays, PyObject *array);

void release(Arrays *arrays);

/* Whether a function got as many arguments as it takes; if not, there is an error. */
int is_called_with(const char *name, Py_ssize_t expected, Py_ssize_t count);

/* Whether an argument is an integer in a range, which is then in `number`; if not, an error. */
int is_integer(PyObject *argument, Py_ssize_t least, Py_ssize_t most, Py_ssize_t *number);

PyObject *count(PyObject *module, PyObject *const *args, Py_ssize_t n_args);
PyObject *draw(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *label_lists(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *scan(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *listed(PyObject *module, PyObject *const *args, Py_ssize_t count);

#endif
