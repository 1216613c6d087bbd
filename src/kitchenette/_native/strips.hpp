// Vector code for Gram matrices: column sums, centered rows in strips, and products of strips.
//
// Both factors of a Gram matrix are the same rows, so they are packed for the product only once,
// while they are centered, whereas a BLAS packs them for every tile. A strip holds three vectors of
// columns, row by row. Its number of rows is such that the two strips that are multiplied and the
// next one fit the first-level cache. A product takes 12 registers for sums (24 of AVX-512's), one
// for each of three vectors and one for a number of the other strip.
//
// Short vectors have no such product: there a BLAS is faster, which may use matrix units or
// instruction sets that are disabled here.
#pragma once

#include "nonlinearity.hpp"

namespace kitchenette::KITCHENETTE_VARIANT {

template <class T> inline constexpr Size strip_width = 3 * lanes<T>;

// sums[j] += sum of weights[i] z(i, j), each column in the order of the rows, for at most
// `most_sums` columns; weights may be null. Returns the largest magnitude of all numbers that are
// not NaN.
template <class T> T add_sums(const T* z, Size stride, Size n_rows, Size n_columns,
                              const double* weights, double* sums) {
    T peaks[most_sums] = {};
    const auto add = [&]<int rows>(Size i) {  // `rows` rows at a time
        const T* first = z + i * stride;
        double weight[rows];
        for (int r = 0; r < rows; ++r) weight[r] = weights ? weights[i + r] : 1.0;
        for (Size j = 0; j < n_columns; ++j) {
            double total = sums[j];
            T peak = peaks[j];
            for (int r = 0; r < rows; ++r) {
                const T value = first[r * stride + j], magnitude = value < 0 ? -value : value;
                total += weight[r] * static_cast<double>(value);
                peak = peak < magnitude ? magnitude : peak;
            }
            sums[j] = total;
            peaks[j] = peak;
        }
    };
    Size i = 0;
    for (; i + 4 <= n_rows; i += 4) add.template operator()<4>(i);
    for (; i < n_rows; ++i) add.template operator()<1>(i);
    T largest = 0;
    for (Size j = 0; j < n_columns; ++j) largest = largest < peaks[j] ? peaks[j] : largest;
    return largest;
}

// Writes (z - high - low) * weight_roots[i] to strips of `width` columns that are `distance`
// numbers apart; the last strip is padded with zeros, and weight_roots may be null. Rows that
// exceed the caches are stored past them; strips must then be aligned to vectors and whole vectors
// wide.
template <class T> void center_rows(const T* z, Size stride, Size n_rows, Size n_columns,
                                    const T* high, const T* low, const double* weight_roots,
                                    T* strips, Size width, Size distance, bool past_caches) {
    constexpr Size N = lanes<T>;
    for (Size begin = 0; begin < n_columns; begin += width, strips += distance) {
        const T *h = high + begin, *l = low + begin;
        const Size count = n_columns - begin < width ? n_columns - begin : width;
        for (Size i = 0; i < n_rows; ++i) {
            const T* source = z + i * stride + begin;
            T* target = strips + i * width;
            const T root = weight_roots ? static_cast<T>(weight_roots[i]) : T{1};
            Size j = 0;
            for (; j + N <= count; j += N) {
                const Vec<T> numbers =
                    (load(source + j) - load(h + j) - load(l + j)) * broadcast(root);
                if (past_caches)
                    stream(target + j, numbers);
                else
                    store(target + j, numbers);
            }
            for (; j < count; ++j) target[j] = (source[j] - h[j] - l[j]) * root;
            for (; j < width; ++j) target[j] = 0;
        }
    }
    if (past_caches) publish();
}

// product(i, j) = or += sum over the rows of left(row, i) right(row, j), for all columns i of one
// strip and the first n_right columns j of another, rounded up to a multiple of `some`. The product
// and the strip `wanted` by the next call are prefetched.
template <class T> void multiply_strips(const T* left, const T* right, Size n_rows, Size n_right,
                                        T* product, Size stride, bool add, const T* wanted) {
    constexpr Size N = lanes<T>, width = strip_width<T>;
    constexpr int some = vector_bytes >= 64 ? 8 : 4;
    constexpr int line = 64 / sizeof(T);
    static_assert(width % some == 0 && 4 * some % line == 0);
    for (Size first = 0; first < n_right; first += some) {
        Vec<T> sums[some][3];
        KITCHENETTE_UNROLL
        for (int j = 0; j < some; ++j) KITCHENETTE_UNROLL
        for (int v = 0; v < 3; ++v) {
            prefetch(product + (first + j) * stride + v * N);
            sums[j][v] = zero<T>();
        }
        const T *a = left, *b = right + first;
        const auto add_row = [&](Size row) {
            const T *x = a + row * width, *y = b + row * width;
            const Vec<T> x0 = load(x), x1 = load(x + N), x2 = load(x + 2 * N);
            KITCHENETTE_UNROLL
            for (int j = 0; j < some; ++j) {
                const Vec<T> value = broadcast(y[j]);
                sums[j][0] = mul_add(x0, value, sums[j][0]);
                sums[j][1] = mul_add(x1, value, sums[j][1]);
                sums[j][2] = mul_add(x2, value, sums[j][2]);
            }
        };
        const T* next = wanted + first * n_rows;  // each iteration prefetches its part
        Size row = 0;
        for (; row + 4 <= n_rows; row += 4, a += 4 * width, b += 4 * width, next += 4 * some) {
            KITCHENETTE_UNROLL
            for (int k = 0; k < 4 * some; k += line) prefetch(next + k);
            KITCHENETTE_UNROLL
            for (int k = 0; k < 4; ++k) add_row(k);
        }
        for (; row < n_rows; ++row, a += width, b += width) add_row(0);
        KITCHENETTE_UNROLL
        for (int j = 0; j < some; ++j) {
            T* column = product + (first + j) * stride;
            KITCHENETTE_UNROLL
            for (int v = 0; v < 3; ++v)
                store(column + v * N, add ? load(column + v * N) + sums[j][v] : sums[j][v]);
        }
    }
}

template <class T> constexpr auto product_of_strips() -> decltype(CommonCode<T>::multiply_strips) {
#if defined(KITCHENETTE_GNU_VECTORS)
    if constexpr (vector_bytes >= 32) return multiply_strips<T>;
#endif
    return nullptr;
}

}  // namespace kitchenette::KITCHENETTE_VARIANT
