// What a Gram matrix in double precision needs: sums of rows, and products of rows centred at
// their mean, added to one triangle of it.
#pragma once

#include "variants.hpp"

namespace kitchenette {

// sums[j] += sum of weights[i] z(i, j), each column in the order of the rows; weights may be
// null. Returns the largest magnitude of all numbers that are numbers.
template <class T> double add_column_sums(const T* z, Size stride, Size n_rows, Size n_columns,
                                          const double* weights, double* sums);

// Rows that wait for their product, at most `capacity` of them, in memory that they share. Their
// order depends on the instruction set, which must be the same when they are multiplied.
template <class T> struct WaitingRows {
    T* memory;
    Size capacity, n_columns;
};

// The numbers of that memory.
Size waiting_size(Size capacity, Size n_columns);

// Rows first, first + 1, ... become (z - mean) * roots, with a factor for every row, and the one
// after these becomes `last`; roots and last may be null.
template <class T> void centre_rows(const T* z, Size stride, Size n_rows, const double* mean,
                                    const double* roots, const double* last, Size first,
                                    const WaitingRows<T>& waiting);

// Two functions of the BLAS, as SciPy hands them to others: Fortran's arguments, 32-bit numbers.
template <class T> struct Blas {
    void (*gemm)(char*, char*, int*, int*, int*, T*, T*, int*, T*, int*, T*, T*, int*);
    void (*syrk)(char*, char*, int*, int*, T*, T*, int*, T*, T*, int*);
};

// Whether add_products calls the BLAS. Every thread has tiles of its own, so one with a single
// thread serves best then.
bool products_call_blas();

// Adds scale * A'A to a symmetric matrix in LAPACK's rectangular full packed format
// (TRANSR = 'N', UPLO = 'L'), where A are the first rows that wait, and scale * A'T to the matrix
// `cross`, stored by rows.
template <class T> void add_products(const WaitingRows<T>& waiting, Size n_rows, const T* targets,
                                     Size n_targets, double scale, const Blas<T>& blas,
                                     double* packed, double* cross);

}  // namespace kitchenette
