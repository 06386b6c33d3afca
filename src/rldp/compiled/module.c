/* The module rldp.compiled._loops; _loops.pyi says what its functions take and give. */
#include <string.h>

#include "loops.h"

/* Take an array whose items are native integers at places that are multiples of their size. */
static Py_buffer *integers(Arrays *arrays, PyObject *array, int flags) {
    Py_buffer *view = &arrays->views[arrays->count];
    if (PyObject_GetBuffer(array, view, flags | PyBUF_FORMAT) < 0) {
        if (PyErr_ExceptionMatches(PyExc_BufferError))
            PyErr_SetString(PyExc_ValueError, "expected an array in C order that may be written");
        return NULL;
    }
    arrays->count++;
    const char *format = view->format ? view->format : "B";
    if (strlen(format) != 1 || !strchr("bBhHiIlLqQ", *format) || view->itemsize < 1) {
        PyErr_Format(PyExc_ValueError, "expected integers, got the format %s", format);
        return NULL;
    }
    if ((uintptr_t)view->buf % (size_t)view->itemsize) {
        PyErr_SetString(PyExc_ValueError, "expected aligned integers");
        return NULL;
    }
    return view;
}

static Py_buffer *of_size(Py_buffer *view, Py_ssize_t itemsize) {
    if (view && itemsize && view->itemsize != itemsize) {
        PyErr_Format(PyExc_ValueError, "expected integers of %zd bytes, got %zd", itemsize,
                     view->itemsize);
        return NULL;
    }
    return view;
}

Py_buffer *contiguous(Arrays *arrays, PyObject *array, Py_ssize_t itemsize, int is_written) {
    int flags = PyBUF_C_CONTIGUOUS | (is_written ? PyBUF_WRITABLE : 0);
    return of_size(integers(arrays, array, flags), itemsize);
}

Py_buffer *strided(Arrays *arrays, PyObject *array) {
    Py_buffer *view = of_size(integers(arrays, array, PyBUF_STRIDES), 8);
    if (view && (view->ndim != 1 || (view->shape[0] > 1 && view->strides[0] % 8))) {
        PyErr_SetString(PyExc_ValueError, "expected one dimension of aligned integers");
        return NULL;
    }
    return view;
}

void release(Arrays *arrays) {
    while (arrays->count) PyBuffer_Release(&arrays->views[--arrays->count]);
}

int is_called_with(const char *name, Py_ssize_t expected, Py_ssize_t count) {
    if (count != expected)
        PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, got %zd", name, expected, count);
    return count == expected;
}

int is_integer(PyObject *argument, Py_ssize_t least, Py_ssize_t most, Py_ssize_t *number) {
    int overflow = 0;
    long long found = PyLong_AsLongLongAndOverflow(argument, &overflow);
    if (PyErr_Occurred()) return 0;
    *number = (Py_ssize_t)found;
    if (!overflow && found >= least && found <= most) return 1;
    PyErr_Format(PyExc_ValueError, "expected an integer from %zd to %zd, got %R", least, most,
                 argument);
    return 0;
}

#define FUNCTION(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL}

static PyMethodDef functions[] = {
    FUNCTION(count),  FUNCTION(draw), FUNCTION(label_lists), FUNCTION(scan),
    FUNCTION(listed), {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_loops", NULL, 0, functions, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__loops(void) { return PyModuleDef_Init(&definition); }
