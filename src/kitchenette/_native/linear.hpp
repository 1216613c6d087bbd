// Products of features and weights, for features that are still in the cache.
#pragma once

#include "variants.hpp"

#if defined(KITCHENETTE_VARIANT)
#include "hadamard.hpp"

namespace kitchenette::KITCHENETTE_VARIANT {

// The sum of all lanes, added pairwise.
template <int H, class T> KITCHENETTE_INLINE T sum_of_lanes(Vec<T> a) {
    if constexpr (H == 0)
        return a[0];
    else
        return sum_of_lanes<H / 2>(a + swap_lanes<H>(a));
}

// Loads `count` numbers, fewer than a vector has lanes, and pads them with zeros.
template <class T> KITCHENETTE_INLINE Vec<T> load_some(const T* p, Size count) {
    Vec<T> out = zero<T>();
    std::memcpy(&out, p, sizeof(T) * count);
    return out;
}

// sums[r][c] += <features of row r, weights of target c> for RowCount rows and Targets targets.
// Every pair has one chain of multiply-adds, so its rounding does not depend on the tile.
template <int RowCount, int Targets, class T>
KITCHENETTE_INLINE void dot_tile(const T* features, Size stride, Size n, const T* weights,
                                 Size n_targets, double* sums) {
    constexpr Size N = lanes<T>;
    Vec<T> a[RowCount][Targets];
    KITCHENETTE_UNROLL
    for (int r = 0; r < RowCount; ++r) KITCHENETTE_UNROLL
    for (int c = 0; c < Targets; ++c) a[r][c] = zero<T>();
    const auto add = [&](Size j, const auto& read) {
        Vec<T> w[Targets];
        KITCHENETTE_UNROLL
        for (int c = 0; c < Targets; ++c) w[c] = read(weights + c * n + j);
        KITCHENETTE_UNROLL
        for (int r = 0; r < RowCount; ++r) {
            const Vec<T> z = read(features + r * stride + j);
            KITCHENETTE_UNROLL
            for (int c = 0; c < Targets; ++c) a[r][c] = mul_add(z, w[c], a[r][c]);
        }
    };
    Size j = 0;
    for (; j + N <= n; j += N) add(j, [](const T* p) { return load(p); });
    if (j < n) add(j, [n, j](const T* p) { return load_some(p, n - j); });
    for (int r = 0; r < RowCount; ++r)
        for (int c = 0; c < Targets; ++c)
            sums[r * n_targets + c] += static_cast<double>(sum_of_lanes<N / 2>(a[r][c]));
}

template <int Targets, class T>
KITCHENETTE_INLINE void dot_column(const T* features, Size stride, Size n_rows, Size n,
                                   const T* weights, Size n_targets, double* sums) {
    Size r = 0;
    for (; r + 4 <= n_rows; r += 4)
        dot_tile<4, Targets>(features + r * stride, stride, n, weights, n_targets,
                             sums + r * n_targets);
    for (; r < n_rows; ++r)
        dot_tile<1, Targets>(features + r * stride, stride, n, weights, n_targets,
                             sums + r * n_targets);
}

// sums[r][c] += <row r of features, row c of weights>; the weights of a target are contiguous.
template <class T> void add_dot_products(const T* features, Size stride, Size n_rows,
                                         Size n_features, const T* weights, Size n_targets,
                                         double* sums) {
    Size c = 0;
    for (; c + 3 <= n_targets; c += 3)
        dot_column<3>(features, stride, n_rows, n_features, weights + c * n_features, n_targets,
                      sums + c);
    if (c + 2 == n_targets)
        dot_column<2>(features, stride, n_rows, n_features, weights + c * n_features, n_targets,
                      sums + c);
    else if (c + 1 == n_targets)
        dot_column<1>(features, stride, n_rows, n_features, weights + c * n_features, n_targets,
                      sums + c);
}

// sums[f][c] += the sum over the rows of feature f times factor c, for the `count` features from f
// on, which fit a vector.
template <int Targets, class T>
KITCHENETTE_INLINE void outer_tile(const T* features, Size stride, Size n_rows, Size count,
                                   const T* factors, Size n_targets, double* sums) {
    constexpr Size N = lanes<T>;
    Vec<T> a[Targets];
    KITCHENETTE_UNROLL
    for (int c = 0; c < Targets; ++c) a[c] = zero<T>();
    for (Size r = 0; r < n_rows; ++r) {
        const T* row = features + r * stride;
        const Vec<T> z = count < N ? load_some(row, count) : load(row);
        KITCHENETTE_UNROLL
        for (int c = 0; c < Targets; ++c)
            a[c] = mul_add(z, broadcast(factors[r * n_targets + c]), a[c]);
    }
    const Size end = count < N ? count : N;
    for (int c = 0; c < Targets; ++c)
        for (Size k = 0; k < end; ++k)
            sums[k * n_targets + c] += static_cast<double>(a[c][static_cast<int>(k)]);
}

// sums[f][c] += the sum over all rows r of features[r][f] factors[r][c].
template <class T> void add_outer_products(const T* features, Size stride, Size n_rows,
                                           Size n_features, const T* factors, Size n_targets,
                                           double* sums) {
    for (Size f = 0; f < n_features; f += lanes<T>) {
        Size c = 0;
        for (; c + 8 <= n_targets; c += 8)
            outer_tile<8>(features + f, stride, n_rows, n_features - f, factors + c, n_targets,
                          sums + f * n_targets + c);
        for (; c + 4 <= n_targets; c += 4)
            outer_tile<4>(features + f, stride, n_rows, n_features - f, factors + c, n_targets,
                          sums + f * n_targets + c);
        for (; c < n_targets; ++c)
            outer_tile<1>(features + f, stride, n_rows, n_features - f, factors + c, n_targets,
                          sums + f * n_targets + c);
    }
}

}  // namespace kitchenette::KITCHENETTE_VARIANT
#endif
