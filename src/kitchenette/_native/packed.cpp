#include "packed.hpp"

#include <algorithm>

namespace kitchenette {

namespace {

constexpr Size columns_at_once = 256;  // of the inverse of a factor

// The three blocks of a packed matrix, each stored by columns, and calls of the BLAS on them.
template <class T> struct Blocks {
    Size n1, n2, height;
    T *leading, *square, *trailing;

    Blocks(T* packed, Size order)
        : n1((order + 1) / 2),
          n2(order - n1),
          height(order + 1 - order % 2),
          leading(packed + height - order),
          square(leading + n1),
          trailing(packed + order % 2 * height) {}
};

int narrow(Size size) {
    return static_cast<int>(size);
}

template <class T> Size potrf(char uplo, Size order, T* matrix, Size stride, const Blas& blas) {
    int n = narrow(order), ld = narrow(stride), info = 0;
    blas.of<T>().potrf(&uplo, &n, matrix, &ld, &info);
    return info;
}

template <class T> void trsm(char side, char uplo, char transposed, Size n_rows, Size n_columns,
                             const T* triangle, Size stride, T* b, Size b_stride,
                             const Blas& blas) {
    char diagonal = 'N';
    int m = narrow(n_rows), n = narrow(n_columns), ld = narrow(stride), ld_b = narrow(b_stride);
    T one = 1;
    blas.of<T>().trsm(&side, &uplo, &transposed, &diagonal, &m, &n, &one, const_cast<T*>(triangle),
                      &ld, b, &ld_b);
}

// c -= op(a) b
template <class T> void subtract_product(char transposed, Size n_rows, Size n_columns, Size depth,
                                         const T* a, Size a_stride, const T* b, T* c, Size stride,
                                         const Blas& blas) {
    char plain = 'N';
    int m = narrow(n_rows), n = narrow(n_columns), k = narrow(depth);
    int ld_a = narrow(a_stride), ld = narrow(stride);
    T minus = -1, one = 1;
    blas.of<T>().gemm(&transposed, &plain, &m, &n, &k, &minus, const_cast<T*>(a), &ld_a,
                      const_cast<T*>(b), &ld, &one, c, &ld);
}

// Forward substitution for right-hand sides that are zero above row `first`, and begin there.
template <class T> void forward(const Blocks<const T>& L, Size first, T* b, Size n_columns,
                                Size stride, const Blas& blas) {
    const Size ld = L.height, skipped = std::max(Size{0}, first - L.n1);
    const Size upper = std::max(Size{0}, L.n1 - first);
    if (upper > 0)
        trsm('L', 'L', 'N', upper, n_columns, L.leading + first * (ld + 1), ld, b, stride, blas);
    if (L.n2 == 0) return;
    if (upper > 0)
        subtract_product('N', L.n2, n_columns, upper, L.square + first * ld, ld, b, b + upper,
                         stride, blas);
    trsm('L', 'U', 'T', L.n2 - skipped, n_columns, L.trailing + skipped * (ld + 1), ld, b + upper,
         stride, blas);
}

}  // namespace

template <class T> Size cholesky(T* packed, Size order, const Blas& blas) {
    const Blocks<T> A(packed, order);
    const Size ld = A.height;
    if (const Size info = potrf('L', A.n1, A.leading, ld, blas)) return info;
    if (A.n2 == 0) return 0;
    trsm<T>('R', 'L', 'T', A.n2, A.n1, A.leading, ld, A.square, ld, blas);
    char upper = 'U', plain = 'N';
    int n = narrow(A.n2), k = narrow(A.n1), stride = narrow(ld);
    T minus = -1, one = 1;
    blas.of<T>().syrk(&upper, &plain, &n, &k, &minus, A.square, &stride, &one, A.trailing, &stride);
    const Size info = potrf('U', A.n2, A.trailing, ld, blas);
    return info > 0 ? A.n1 + info : 0;
}

template <class T> void substitute(const T* factor, Size order, T* b, Size n_columns,
                                   bool transposed, const Blas& blas) {
    const Blocks<const T> L(factor, order);
    if (!transposed) return forward(L, Size{0}, b, n_columns, order, blas);
    const Size ld = L.height;
    if (L.n2 > 0) {
        trsm('L', 'U', 'N', L.n2, n_columns, L.trailing, ld, b + L.n1, order, blas);
        subtract_product('T', L.n1, n_columns, L.n2, L.square, ld, b + L.n1, b, order, blas);
    }
    trsm('L', 'L', 'T', L.n1, n_columns, L.leading, ld, b, order, blas);
}

template <class T> double inverse_trace(const T* factor, Size order, const Blas& blas) {
    const Blocks<const T> L(factor, order);
    const Size width = std::min(columns_at_once, order);
    const AlignedBuffer<T> columns(width * order);
    double sum = 0;
    for (Size first = 0; first < order;) {
        // A block of columns lies in one of the triangles.
        const Size end = std::min(first + width, first < L.n1 ? L.n1 : order);
        const Size n_rows = order - first, count = end - first;
        T* b = columns.data();
        std::fill_n(b, n_rows * count, T{0});
        for (Size j = 0; j < count; ++j) b[j * n_rows + j] = 1;
        forward(L, first, b, count, n_rows, blas);
        for (Size j = 0; j < count; ++j)
            for (Size i = j; i < n_rows; ++i) {
                const double x = static_cast<double>(b[j * n_rows + i]);
                sum += x * x;
            }
        first = end;
    }
    return sum;
}

#define KITCHENETTE_INSTANTIATE(T)                                            \
    template Size cholesky<T>(T*, Size, const Blas&);                         \
    template void substitute<T>(const T*, Size, T*, Size, bool, const Blas&); \
    template double inverse_trace<T>(const T*, Size, const Blas&);
KITCHENETTE_INSTANTIATE(float)
KITCHENETTE_INSTANTIATE(double)

}  // namespace kitchenette
