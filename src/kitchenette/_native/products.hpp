// Products of projections on random signs, for Random Maclaurin features (Kar and Karnick
// 2012) of any degree:
//
//   feature = weight * z_1 z_2 ... z_n,   z_j = <signs, x>
//
// Hadamard: z_j is a randomly chosen coordinate of H (signs_j * x). Each factor has signs of its
// own, so no two coordinates of one transform meet in a product; all features share the
// transforms, which are made once per row, and differ in the coordinates they pick.
//
// Dense: z_j has signs of its own, kept as bits, and multiplied like the dense frequencies.
#pragma once

#include "dense.hpp"
#include "structured.hpp"

namespace kitchenette::KITCHENETTE_VARIANT {

// ---------------------------------------------------------------- Hadamard

template <class T> KITCHENETTE_INLINE Structured<T> transforms_of(const HadamardProducts<T>& map) {
    Structured<T> transforms;
    transforms.block = map.block;
    transforms.signs = map.signs;
    transforms.column_scales = map.column_scales;
    return transforms;
}

// Where the transform of factor j starts; after its last coordinate there is a one.
template <class T>
KITCHENETTE_INLINE T* factor_at(const HadamardProducts<T>& map, T* factors, Size j, Size unit) {
    return factors + j * (map.tile() + product_group) * unit;
}

template <class T> bool hadamard_products_lanes(const HadamardProducts<T>& map, const Rows<T>& rows,
                                                Size row, Size count, Size first_group,
                                                Size last_group, const Output<T>& out, T* scratch) {
    constexpr Size N = lanes<T>;
    const Structured<T> transforms = transforms_of(map);
    T* x = scratch;
    T* table = x + map.block * N;
    T* factors = table + map.tile();
    read_lanes(rows, row, count, map.block, map.column_scales, x);
    for (Size j = 0; j < map.n_factors; ++j) {
        T* factor = factor_at(map, factors, j, N);
        first_transform<T, false>(transforms, x, j * map.tile(), factor, table);
        store(factor + map.tile() * N, broadcast(T{1}));
    }
    const TailParameters<T> tail;
    const Identity<T> identity(tail);
    using Writer = LaneWriter<T, Identity<T>>;
    static_assert(product_group % Writer::chunk == 0);
    Writer writer{identity, tail, out, row, count, {}};
    for (Size group = first_group; group < last_group; ++group) {
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
                                              Size row, Size first_group, Size last_group,
                                              const Output<T>& out, T* scratch) {
    constexpr Size N = lanes<T>;
    const Structured<T> transforms = transforms_of(map);
    T* x = scratch;
    T* table = x + (map.block < N ? N : map.block);
    T* factors = table + map.tile();
    read_row(transforms, rows, row, x);
    for (Size j = 0; j < map.n_factors; ++j) {
        T* factor = factor_at(map, factors, j, Size{1});
        first_transform<T, true>(transforms, x, j * map.tile(), factor, table);
        factor[map.tile()] = 1;
    }
    const TailParameters<T> tail;
    const Identity<T> identity(tail);
    RowWriter<T, Identity<T>> writer{
        identity, tail, out.data + row * out.stride, out.n_columns, {}};
    for (Size group = first_group; group < last_group; ++group) {
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

template <class T> Size hadamard_products_scratch(const HadamardProducts<T>& map) {
    const Size unit = map.row_by_row() ? 1 : lanes<T>;
    const Size block = map.block < lanes<T> ? lanes<T> : map.block;
    return block * unit + map.tile() + map.n_factors * (map.tile() + product_group) * unit;
}

// ---------------------------------------------------------------- signs kept as bits

// 64 bits become 64 numbers: `set` where a bit is set, else `clear`.
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

template <class T> bool sign_products_rows(const SignProducts<T>& map, const Rows<T>& rows,
                                           Size row, Size count, Size first_panel, Size last_panel,
                                           const Output<T>& out, T* scratch) {
    constexpr Size N = lanes<T>;
    T* sums = scratch;
    T* products = sums + count * panel;
    T* expanded = products + count * panel;
    T* used = expanded + depth * panel;
    T* unused = used + panel;
    const TailParameters<T> tail;
    const Identity<T> identity(tail);
    bool fine = true;
    for (Size p = first_panel; p < last_panel; ++p) {
        for (Size r = 0; r < count; ++r)
            std::memcpy(products + r * panel, map.weights + p * panel, sizeof(T) * panel);
        for (Size factor = map.starts[p]; factor < map.starts[p + 1]; ++factor) {
            const std::uint64_t* bits = map.bits + factor * rows.n_columns;
            if (rows.sparse()) {
                for (Size r = 0; r < count; ++r) {
                    const Size start = rows.starts[row + r], n = rows.starts[row + r + 1] - start;
                    project_on_bits(map, bits, rows.values + start, Size{0}, Size{1}, n,
                                    rows.indices + start, expanded, sums + r * panel);
                }
            } else {
                project_on_bits<T>(map, bits, rows.values + row * rows.stride, rows.stride, count,
                                   rows.n_columns, nullptr, expanded, sums);
            }
            // A feature without this factor is multiplied by one.
            expand(map.used[factor], T{1}, T{0}, used);
            expand(map.used[factor], T{0}, T{1}, unused);
            for (Size i = 0; i < count * panel; i += N) {
                const Size k = i % panel;
                const Vec<T> z = mul_add(load(sums + i), load(used + k), load(unused + k));
                store(products + i, load(products + i) * z);
            }
        }
        for (Size r = 0; r < count; ++r) {
            RowWriter<T, Identity<T>> writer{
                identity, tail, out.data + (row + r) * out.stride, out.n_columns, {}};
            for (Size k = 0; k < panel; k += N)
                writer.write(p * panel + k, load(products + r * panel + k));
            fine &= !writer.overflow;
        }
    }
    return fine;
}

template <class T> Size sign_products_scratch(Size count) {
    return (2 * count + depth + 2) * panel;
}

}  // namespace kitchenette::KITCHENETTE_VARIANT
