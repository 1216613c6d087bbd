// Cholesky factors of symmetric matrices in LAPACK's rectangular full packed format (TRANSR = 'N',
// UPLO = 'L'), by the same calls of the BLAS as LAPACK's own, so that the results are the same
// bits. LAPACK's own take the length of the whole array, which is 2^31 at order 65,536, as a 32-bit
// number; these take only orders.
//
// With n1 = ceil(n / 2) and n2 = n - n1, the rectangle has a leading triangle (lower, n1 x n1), a
// square below it (n2 x n1) and the trailing triangle transposed (upper, n2 x n2).
#pragma once

#include "blas.hpp"
#include "threads.hpp"

namespace kitchenette {

// Overwrites a matrix A by its Cholesky factor L with A = L L'. Returns 0, or the number of the
// first column, from one on, up to which A is not positive definite.
template <class T> Size cholesky(T* packed, Size order, const Blas& blas);

// Overwrites the matrix b, stored by columns, by L^-1 b or, if transposed, by L'^-1 b.
template <class T> void substitute(const T* factor, Size order, T* b, Size n_columns,
                                   bool transposed, const Blas& blas);

// The trace of (L L')^-1, which is the sum of the squares of L^-1. It is computed from a block of
// columns of L^-1 at a time, at the cost of one more factor.
template <class T> double inverse_trace(const T* factor, Size order, const Blas& blas);

}  // namespace kitchenette
