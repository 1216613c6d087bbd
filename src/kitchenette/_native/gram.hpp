// What a Gram matrix in double precision needs besides products of rows: their sums, rows
// centred at a mean, and the addition of products to one triangle of it. Bound by memory, so
// there are no variants for instruction sets.
#pragma once

#include "kernels.hpp"

namespace kitchenette {

// sums[j] += sum of weights[i] z(i, j), each column in the order of the rows; weights may be
// null. Returns the largest magnitude of all numbers that are numbers.
template <class T> double add_column_sums(const T* z, Size stride, Size n_rows, Size n_columns,
                                          const double* weights, double* sums);

// out = (z - mean) * roots, a factor for every row; roots may be null.
template <class T> void centre_rows(const T* z, Size stride, Size n_rows, Size n_columns,
                                    const double* mean, const double* roots, T* out,
                                    Size out_stride);

// Two functions of the BLAS, as SciPy hands them to others: Fortran's arguments, 32-bit numbers.
template <class T> struct Blas {
    void (*gemm)(char*, char*, int*, int*, int*, T*, T*, int*, T*, int*, T*, T*, int*);
    void (*syrk)(char*, char*, int*, int*, T*, T*, int*, T*, T*, int*);
};

// Adds scale * A'A to a symmetric matrix in LAPACK's rectangular full packed format
// (TRANSR = 'N', UPLO = 'L'), whose order is the number of columns of A, and scale * A'T to the
// matrix `cross`, stored by rows. Every thread has tiles of its own, so a BLAS with one thread
// serves best.
template <class T> void add_products(const T* rows, Size stride, Size n_rows, Size order,
                                     const T* targets, Size n_targets, T scale, const Blas<T>& blas,
                                     double* packed, double* cross);

}  // namespace kitchenette
