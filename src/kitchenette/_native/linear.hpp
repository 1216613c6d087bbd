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

// Calls body.operator()<Targets>(c) for groups of targets from c on: of three, which fill the
// registers of a tile, and of two at the end, because a single target would leave most of them
// idle.
template <class Body> KITCHENETTE_INLINE void for_target_groups(Size n_targets, const Body& body) {
    Size c = 0;
    for (; n_targets - c == 3 || n_targets - c > 4; c += 3) body.template operator()<3>(c);
    for (; n_targets - c >= 2; c += 2) body.template operator()<2>(c);
    if (c < n_targets) body.template operator()<1>(c);
}

// sums[r][c] += <row r of features, row c of weights>; the weights of a target are contiguous.
template <class T> void add_dot_products(const T* features, Size stride, Size n_rows,
                                         Size n_features, const T* weights, Size n_targets,
                                         double* sums) {
    const auto add = [&]<int RowCount>(Size r) {  // few rows at a time, which stay in cache
        for_target_groups(n_targets, [&]<int Targets>(Size c) {
            dot_tile<RowCount, Targets>(features + r * stride, stride, n_features,
                                        weights + c * n_features, n_targets,
                                        sums + r * n_targets + c);
        });
    };
    Size r = 0;
    for (; r + 4 <= n_rows; r += 4) add.template operator()<4>(r);
    for (; r < n_rows; ++r) add.template operator()<1>(r);
}

// sums += numbers.
template <class T> KITCHENETTE_INLINE void add_numbers(const T* numbers, Size n, double* sums) {
    for (Size i = 0; i < n; ++i) sums[i] += static_cast<double>(numbers[i]);
}

// products[c][f] = the sum over the rows of feature f times factor c, for `Vectors` vectors of
// features, or for the `count` features of a single vector.
template <int Vectors, int Targets, class T>
KITCHENETTE_INLINE void outer_tile(const T* features, Size stride, Size n_rows, Size count,
                                   const T* factors, Size n_targets, T* products, Size width) {
    constexpr Size N = lanes<T>;
    Vec<T> a[Vectors][Targets];
    KITCHENETTE_UNROLL
    for (int v = 0; v < Vectors; ++v) KITCHENETTE_UNROLL
    for (int c = 0; c < Targets; ++c) a[v][c] = zero<T>();
    for (Size r = 0; r < n_rows; ++r) {
        const T* row = features + r * stride;
        Vec<T> factor[Targets];
        KITCHENETTE_UNROLL
        for (int c = 0; c < Targets; ++c) factor[c] = broadcast(factors[r * n_targets + c]);
        KITCHENETTE_UNROLL
        for (int v = 0; v < Vectors; ++v) {
            const Vec<T> z = Vectors == 1 && count < N ? load_some(row, count) : load(row + v * N);
            KITCHENETTE_UNROLL
            for (int c = 0; c < Targets; ++c) a[v][c] = mul_add(z, factor[c], a[v][c]);
        }
    }
    KITCHENETTE_UNROLL
    for (int c = 0; c < Targets; ++c) KITCHENETTE_UNROLL
    for (int v = 0; v < Vectors; ++v) store(products + c * width + v * N, a[v][c]);
}

// sums[f][c] += the sum over all rows r of features[r][f] factors[r][c]. Every pair has one chain
// of multiply-adds, so its rounding does not depend on the tile.
template <class T> void add_outer_products(const T* features, Size stride, Size n_rows,
                                           Size n_features, const T* factors, Size n_targets,
                                           double* sums) {
    constexpr Size N = lanes<T>, panel = 48;  // targets whose products stay in cache
    const auto add = [&]<int Vectors>(Size f) {
        constexpr Size width = Vectors * N;
        const Size count = n_features - f < width ? n_features - f : width;
        T products[panel * width], transposed[panel * width];
        for (Size first = 0; first < n_targets; first += panel) {
            const Size targets = n_targets - first < panel ? n_targets - first : panel;
            for_target_groups(targets, [&]<int Targets>(Size c) {
                outer_tile<Vectors, Targets>(features + f, stride, n_rows, count,
                                             factors + first + c, n_targets, products + c * width,
                                             width);
            });
            for (Size c = 0; c < targets; ++c)
                for (Size k = 0; k < width; ++k)
                    transposed[k * targets + c] = products[c * width + k];
            if (targets == n_targets) {
                add_numbers(transposed, count * targets, sums + f * n_targets);
            } else {
                for (Size k = 0; k < count; ++k)
                    add_numbers(transposed + k * targets, targets,
                                sums + (f + k) * n_targets + first);
            }
        }
    };
    // Rows are far apart, so no processor foresees which numbers a tile needs.
    for (Size r = 0; r < n_rows; ++r)
        for (Size f = 0; f < n_features; f += 64 / static_cast<Size>(sizeof(T)))
            prefetch(features + r * stride + f);
    Size f = 0;
    if (n_targets == 1)
        for (; f + 8 * N <= n_features; f += 8 * N) add.template operator()<8>(f);
    for (; f + 4 * N <= n_features; f += 4 * N) add.template operator()<4>(f);
    for (; f < n_features; f += N) add.template operator()<1>(f);
}

}  // namespace kitchenette::KITCHENETTE_VARIANT
#endif
