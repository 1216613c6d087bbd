// What a Gram matrix in double precision needs: sums of rows, and products of rows centred at
// their mean, added to one triangle of it.
#pragma once

#include "kernels.hpp"

namespace kitchenette {

// sums[j] += sum of weights[i] z(i, j), each column in the order of the rows; weights may be
// null. Returns the largest magnitude of all numbers that are numbers.
template <class T> double add_column_sums(const T* z, Size stride, Size n_rows, Size n_columns,
                                          const double* weights, double* sums);

// Rows that become (z - mean) * roots, a factor for every row, and one more row as it is; roots
// and the last row may be null.
template <class T> struct RowsToCentre {
    const T* z;
    Size stride, n_rows, n_columns;
    const double* mean;
    const double* roots;
    const double* last;
};

// Numbers of memory for so many rows, the last one included.
Size centred_size(Size n_rows, Size n_columns);

// Two functions of the BLAS, as SciPy hands them to others: Fortran's arguments, 32-bit numbers.
template <class T> struct Blas {
    void (*gemm)(char*, char*, int*, int*, int*, T*, T*, int*, T*, int*, T*, T*, int*);
    void (*syrk)(char*, char*, int*, int*, T*, T*, int*, T*, T*, int*);
};

// Whether add_products calls the BLAS. Every thread has tiles of its own, so one with a single
// thread serves best then.
bool products_call_blas();

// Adds scale * A'A to a symmetric matrix in LAPACK's rectangular full packed format
// (TRANSR = 'N', UPLO = 'L'), where A are the centred rows, and scale * A'T to the matrix `cross`,
// stored by rows. A will lie in `memory`.
template <class T> void add_products(const RowsToCentre<T>& rows, const T* targets, Size n_targets,
                                     double scale, const Blas<T>& blas, T* memory, double* packed,
                                     double* cross);

}  // namespace kitchenette
