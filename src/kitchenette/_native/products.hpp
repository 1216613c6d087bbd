// Products of projections on random signs, for Random Maclaurin features (Kar and Karnick
// 2012) of any degree:
//
//   feature = weight * z_1 z_2 ... z_n,   z_j = <signs, x>
//
// Hadamard: z_j is a randomly chosen coordinate of H (signs_j * x). Each factor has independent
// signs, so a product never contains two coordinates of one transform. All features share the
// transforms, which are computed once per row, and differ in the coordinates they pick.
//
// Complex: z_j is a coordinate of H (c_j * x) for random fourth roots of unity c_j, and a feature
// is the real or the imaginary part of a product (Wacker, Kanagawa and Filippone 2022).
//
// Dense: z_j has independent signs, stored as bits, and is computed like dense frequencies.
#pragma once

#include "dense.hpp"
#include "structured.hpp"

namespace kitchenette {

// Arrays with one number per feature are padded to a multiple of `product_group`.
inline constexpr Size product_group = 16;

// z_j is coordinate indices[j][feature] of H (signs[j] * x), in a tile of one block or several
// short ones with independent signs. The coordinate after the last is one, for missing factors.
template <class T> struct HadamardProducts {
    Size n_columns = 0;
    Size n_features = 0;  // how many are wanted
    Size n_padded = 0;    // the length of the arrays: whole groups
    Size n_factors = 0;
    Size block = 1;                         // a power of two
    const std::int8_t* signs = nullptr;     // (n_factors, tile)
    const std::int32_t* indices = nullptr;  // (n_factors, n_padded)
    const std::int32_t* depths = nullptr;   // per group: the factors that are not all one
    const T* weights = nullptr;
    const T* column_scales = nullptr;
    bool constant = false;  // no feature depends on the row

    KITCHENETTE_INLINE Size tile() const { return block < 128 ? 128 : block; }
    KITCHENETTE_INLINE bool row_by_row() const {
        return block > Size{1} << 16 || n_factors * block > Size{1} << 18;
    }

    Size n_parts() const { return ceil_divide(n_features, product_group); }
    Size features_per_part() const { return product_group; }
    Size work() const { return n_features + n_factors * block; }
    // Every share of the features computes all transforms, so there is one share per thread.
    Pace pace(Size lanes) const { return row_by_row() ? Pace{1, 0, 1} : Pace{lanes, lanes / 2, 1}; }
    bool checks_rows() const { return constant; }
};

// Features 2 f and 2 f + 1 are the real and the imaginary part of weights[f] z_1 ... z_n. z_j is
// coordinate indices[j][f] of H (signs[2 j] * x) + i H (signs[2 j + 1] * x), where for every column
// one of the two signs is zero. The coordinate after the last is one.
template <class T> struct ComplexProducts {
    Size n_columns = 0;
    Size n_features = 0;  // twice the number of products
    Size n_padded = 0;    // products: the length of the arrays, whole groups
    Size n_factors = 0;
    Size block = 1;                         // a power of two
    const std::int8_t* signs = nullptr;     // (2 n_factors, tile)
    const std::int32_t* indices = nullptr;  // (n_factors, n_padded)
    const std::int32_t* depths = nullptr;   // per group: the factors that are not all one
    const T* weights = nullptr;
    const T* column_scales = nullptr;

    KITCHENETTE_INLINE Size tile() const { return block < 128 ? 128 : block; }
    KITCHENETTE_INLINE bool row_by_row() const {
        return block > Size{1} << 16 || 2 * n_factors * block > Size{1} << 17;
    }

    Size n_parts() const { return ceil_divide(n_features, 2 * product_group); }
    Size features_per_part() const { return 2 * product_group; }
    Size work() const { return n_features + 2 * n_factors * block; }
    Pace pace(Size lanes) const { return row_by_row() ? Pace{1, 0, 1} : Pace{lanes, lanes / 2, 1}; }
    bool checks_rows() const { return false; }
};

// z_j = <bits, x>: panel p has a word per column, whose bit k is the sign of feature 64 p + k. A
// panel owns the factors starts[p] ... starts[p + 1]; a feature has a factor if its bit of `used`
// is set.
template <class T> struct SignProducts {
    Size n_columns = 0;
    Size n_features = 0;
    const std::uint64_t* bits = nullptr;  // (all factors of all panels, n_columns)
    const std::uint64_t* used = nullptr;  // (all factors of all panels)
    const std::int64_t* starts = nullptr;
    const T* weights = nullptr;
    const T* column_scales = nullptr;

    Size n_parts() const { return ceil_divide(n_features, panel); }
    Size features_per_part() const { return panel; }
    Size work() const { return starts[n_parts()] * panel * (n_columns / 8 + 1); }
    Pace pace(Size) const { return {dense_rows, 0, 4}; }
    bool checks_rows() const { return starts[n_parts()] == 0; }
};

}  // namespace kitchenette

#if defined(KITCHENETTE_VARIANT)
#include "fft.hpp"

namespace kitchenette::KITCHENETTE_VARIANT {

// ---------------------------------------------------------------- Hadamard

template <template <class> class Products, class T>
KITCHENETTE_INLINE Structured<T> transforms_of(const Products<T>& map) {
    Structured<T> transforms;
    transforms.n_columns = map.n_columns;
    transforms.block = map.block;
    transforms.signs = map.signs;
    transforms.column_scales = map.column_scales;
    return transforms;
}

// Where the transform of factor j starts; after its last coordinate there is a one.
template <class Products, class Number>
KITCHENETTE_INLINE Number* factor_at(const Products& map, Number* factors, Size j, Size unit) {
    return factors + j * (map.tile() + product_group) * unit;
}

template <class T> bool hadamard_products_lanes(const HadamardProducts<T>& map, const Rows<T>& rows,
                                                const Piece& piece, const Output<T>& out,
                                                T* scratch) {
    constexpr Size N = lanes<T>;
    const Structured<T> transforms = transforms_of(map);
    T* x = scratch;
    T* table = x + map.block * N;
    T* factors = table + map.tile();
    if (!piece.continued) read_lanes(rows, piece.row, piece.count, map.block, map.column_scales, x);
    for (Size j = 0; !piece.continued && j < map.n_factors; ++j) {
        T* factor = factor_at(map, factors, j, N);
        first_transform<T, false>(transforms, x, j * map.tile(), factor, table);
        store(factor + map.tile() * N, broadcast(T{1}));
    }
    const NonlinearityParameters<T> nonlinearity;
    const Identity<T> identity(nonlinearity);
    using Writer = LaneWriter<T, Identity<T>>;
    static_assert(product_group % Writer::chunk == 0);
    Writer writer{identity, nonlinearity, out, piece.row, piece.count, {}};
    for (Size group = piece.first_part; group < piece.last_part; ++group) {
        const Size end = (group + 1) * product_group;
        for (Size f = group * product_group; f < end; f += Writer::chunk) {
            Vec<T> z[Writer::chunk];
            KITCHENETTE_UNROLL
            for (int k = 0; k < Writer::chunk; ++k) z[k] = broadcast(map.weights[f + k]);
            for (Size j = 0; j < map.depths[group]; ++j) {
                const T* factor = factor_at(map, factors, j, N);
                const std::int32_t* indices = map.indices + j * map.n_padded + f;
                KITCHENETTE_UNROLL
                for (int k = 0; k < Writer::chunk; ++k)
                    z[k] = z[k] * load(factor + Size{indices[k]} * N);
            }
            writer.write(f, z);
        }
    }
    return !writer.overflow;
}

template <class T> bool hadamard_products_row(const HadamardProducts<T>& map, const Rows<T>& rows,
                                              const Piece& piece, const Output<T>& out,
                                              T* scratch) {
    constexpr Size N = lanes<T>;
    const Structured<T> transforms = transforms_of(map);
    T* x = scratch;
    T* table = x + (map.block < N ? N : map.block);
    T* factors = table + map.tile();
    if (!piece.continued) read_row(transforms, rows, piece.row, x);
    for (Size j = 0; !piece.continued && j < map.n_factors; ++j) {
        T* factor = factor_at(map, factors, j, Size{1});
        first_transform<T, true>(transforms, x, j * map.tile(), factor, table);
        factor[map.tile()] = 1;
    }
    const NonlinearityParameters<T> nonlinearity;
    const Identity<T> identity(nonlinearity);
    RowWriter<T, Identity<T>> writer(identity, nonlinearity, out, piece.row);
    for (Size group = piece.first_part; group < piece.last_part; ++group) {
        const Size end = (group + 1) * product_group;
        for (Size f = group * product_group; f < end; f += N) {
            Vec<T> z = load(map.weights + f);
            for (Size j = 0; j < map.depths[group]; ++j) {
                const T* factor = factor_at(map, factors, j, Size{1});
                const std::int32_t* indices = map.indices + j * map.n_padded + f;
                Vec<T> picked = zero<T>();
                for (int k = 0; k < N; ++k) picked.set(k, factor[indices[k]]);
                z = z * picked;
            }
            writer.write(f, z);
        }
    }
    return !writer.overflow;
}

template <class T> bool write_features(const HadamardProducts<T>& map, const Rows<T>& rows,
                                       const Piece& piece, const Output<T>& out, T* scratch) {
    return piece.count == 1 ? hadamard_products_row(map, rows, piece, out, scratch)
                            : hadamard_products_lanes(map, rows, piece, out, scratch);
}

template <class T> Size scratch_size(const HadamardProducts<T>& map, Size, bool) {
    const Size unit = map.row_by_row() ? 1 : lanes<T>;
    const Size block = map.block < lanes<T> ? lanes<T> : map.block;
    return block * unit + map.tile() + map.n_factors * (map.tile() + product_group) * unit;
}

// ---------------------------------------------------------------- complex

// The transforms of all factors, real parts and imaginary parts in turn. After the last coordinate
// of a factor there is a one.
template <class T, bool RowLayout>
void complex_factors(const ComplexProducts<T>& map, const T* x, T* factors, T* table) {
    constexpr Size unit = RowLayout ? 1 : lanes<T>;
    const Structured<T> transforms = transforms_of(map);
    for (Size j = 0; j < 2 * map.n_factors; ++j) {
        T* factor = factor_at(map, factors, j, unit);
        first_transform<T, RowLayout>(transforms, x, j * map.tile(), factor, table);
        for (Size k = 0; k < unit; ++k) factor[map.tile() * unit + k] = j % 2 == 0 ? T{1} : T{0};
    }
}

template <class T> bool complex_products_lanes(const ComplexProducts<T>& map, const Rows<T>& rows,
                                               const Piece& piece, const Output<T>& out,
                                               T* scratch) {
    constexpr Size N = lanes<T>;
    T* x = scratch;
    T* table = x + map.block * N;
    T* factors = table + map.tile();
    if (!piece.continued) {
        read_lanes(rows, piece.row, piece.count, map.block, map.column_scales, x);
        complex_factors<T, false>(map, x, factors, table);
    }
    const NonlinearityParameters<T> nonlinearity;
    const Identity<T> identity(nonlinearity);
    using Writer = LaneWriter<T, Identity<T>>;
    constexpr int pairs = Writer::chunk / 2;
    static_assert(product_group % pairs == 0);
    Writer writer{identity, nonlinearity, out, piece.row, piece.count, {}};
    for (Size group = piece.first_part; group < piece.last_part; ++group) {
        const Size end = (group + 1) * product_group;
        for (Size f = group * product_group; f < end; f += pairs) {
            Complex<T> z[pairs];
            KITCHENETTE_UNROLL
            for (int k = 0; k < pairs; ++k) z[k] = {broadcast(map.weights[f + k]), zero<T>()};
            for (Size j = 0; j < map.depths[group]; ++j) {
                const T* re = factor_at(map, factors, 2 * j, N);
                const T* im = factor_at(map, factors, 2 * j + 1, N);
                const std::int32_t* indices = map.indices + j * map.n_padded + f;
                KITCHENETTE_UNROLL
                for (int k = 0; k < pairs; ++k)
                    z[k] = z[k] * load(re + Size{indices[k]} * N, im + Size{indices[k]} * N);
            }
            Vec<T> values[Writer::chunk];
            KITCHENETTE_UNROLL
            for (int k = 0; k < pairs; ++k) {
                values[2 * k] = z[k].re;
                values[2 * k + 1] = z[k].im;
            }
            writer.write(2 * f, values);
        }
    }
    return !writer.overflow;
}

template <class T> bool complex_products_row(const ComplexProducts<T>& map, const Rows<T>& rows,
                                             const Piece& piece, const Output<T>& out, T* scratch) {
    constexpr Size N = lanes<T>;
    T* x = scratch;
    T* table = x + (map.block < N ? N : map.block);
    T* factors = table + map.tile();
    if (!piece.continued) {
        read_row(transforms_of(map), rows, piece.row, x);
        complex_factors<T, true>(map, x, factors, table);
    }
    const NonlinearityParameters<T> nonlinearity;
    const Identity<T> identity(nonlinearity);
    RowWriter<T, Identity<T>> writer(identity, nonlinearity, out, piece.row);
    for (Size group = piece.first_part; group < piece.last_part; ++group) {
        const Size end = (group + 1) * product_group;
        for (Size f = group * product_group; f < end; f += N) {
            Complex<T> z = {load(map.weights + f), zero<T>()};
            for (Size j = 0; j < map.depths[group]; ++j) {
                const T* re = factor_at(map, factors, 2 * j, Size{1});
                const T* im = factor_at(map, factors, 2 * j + 1, Size{1});
                const std::int32_t* indices = map.indices + j * map.n_padded + f;
                Complex<T> picked = {zero<T>(), zero<T>()};
                for (int k = 0; k < N; ++k) {
                    picked.re.set(k, re[indices[k]]);
                    picked.im.set(k, im[indices[k]]);
                }
                z = z * picked;
            }
            interleave(z.re, z.im);
            writer.write(2 * f, z.re);
            writer.write(2 * f + N, z.im);
        }
    }
    return !writer.overflow;
}

template <class T> bool write_features(const ComplexProducts<T>& map, const Rows<T>& rows,
                                       const Piece& piece, const Output<T>& out, T* scratch) {
    return piece.count == 1 ? complex_products_row(map, rows, piece, out, scratch)
                            : complex_products_lanes(map, rows, piece, out, scratch);
}

template <class T> Size scratch_size(const ComplexProducts<T>& map, Size, bool) {
    const Size unit = map.row_by_row() ? 1 : lanes<T>;
    const Size block = map.block < lanes<T> ? lanes<T> : map.block;
    return block * unit + map.tile() + 2 * map.n_factors * (map.tile() + product_group) * unit;
}

// ---------------------------------------------------------------- signs kept as bits

// Expands 64 bits to 64 numbers: `set` where a bit is set, else `clear`.
template <class T> KITCHENETTE_INLINE void expand(std::uint64_t word, T set, T clear, T* out) {
    for (int k = 0; k < panel; ++k) out[k] = (word >> k) & 1 ? set : clear;
}

// products[r] *= <signs, row r> for one factor of a panel. `columns` names the columns of sparse
// values; dense rows have all of them.
template <class T>
KITCHENETTE_INLINE void project_on_bits(const SignProducts<T>& map, const std::uint64_t* bits,
                                        const T* values, Size stride, Size count, Size n,
                                        const std::int32_t* columns, T* expanded, T* sums) {
    std::memset(sums, 0, sizeof(T) * count * panel);
    for (Size j = 0; j < n; j += depth) {
        const Size width = n - j < depth ? n - j : depth;
        for (Size k = 0; k < width; ++k) {
            const Size column = columns ? Size{columns[j + k]} : j + k;
            const T scale = map.column_scales ? map.column_scales[column] : T{1};
            expand(bits[column], -scale, scale, expanded + k * panel);
        }
        multiply_rows(values + j, stride, count, width, expanded, sums);
    }
}

// products[r] *= the factor's projections of row r, or one where a feature has no such factor.
template <class T> void multiply_by_factor(const SignProducts<T>& map, Size factor, const T* sums,
                                           Size count, T* products) {
    constexpr Size N = lanes<T>;
    T used[panel], unused[panel];
    expand(map.used[factor], T{1}, T{0}, used);
    expand(map.used[factor], T{0}, T{1}, unused);
    for (Size i = 0; i < count * panel; i += N) {
        const Size k = i % panel;
        const Vec<T> z = mul_add(load(sums + i), load(used + k), load(unused + k));
        store(products + i, load(products + i) * z);
    }
}

template <class T> bool write_features(const SignProducts<T>& map, const Rows<T>& rows,
                                       const Piece& piece, const Output<T>& out, T* scratch) {
    constexpr Size N = lanes<T>;
    const Size count = piece.count;
    T* sums = scratch;
    T* products = sums + count * panel;
    T* expanded = products + count * panel;
    const NonlinearityParameters<T> nonlinearity;
    const Identity<T> identity(nonlinearity);
    bool fine = true;
    for (Size p = piece.first_part; p < piece.last_part; ++p) {
        for (Size r = 0; r < count; ++r)
            std::memcpy(products + r * panel, map.weights + p * panel, sizeof(T) * panel);
        for (Size factor = map.starts[p]; factor < map.starts[p + 1]; ++factor) {
            const std::uint64_t* bits = map.bits + factor * rows.n_columns;
            for (Size r = 0; rows.sparse() && r < count; ++r) {
                const Size start = rows.starts[piece.row + r];
                project_on_bits(map, bits, rows.values + start, Size{0}, Size{1},
                                rows.starts[piece.row + r + 1] - start, rows.indices + start,
                                expanded, sums + r * panel);
            }
            if (!rows.sparse())
                project_on_bits<T>(map, bits, rows.values + piece.row * rows.stride, rows.stride,
                                   count, rows.n_columns, nullptr, expanded, sums);
            multiply_by_factor(map, factor, sums, count, products);
        }
        for (Size r = 0; r < count; ++r) {
            RowWriter<T, Identity<T>> writer(identity, nonlinearity, out, piece.row + r);
            for (Size k = 0; k < panel; k += N)
                writer.write(p * panel + k, load(products + r * panel + k));
            fine &= !writer.overflow;
        }
    }
    return fine;
}

template <class T> Size scratch_size(const SignProducts<T>&, Size count, bool) {
    return (2 * count + depth) * panel;
}

}  // namespace kitchenette::KITCHENETTE_VARIANT
#endif
