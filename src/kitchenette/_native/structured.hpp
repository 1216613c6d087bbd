// Fused structured projections: Fastfood (Le, Sarlos and Smola 2013, eq. 33) and
// orthogonal blocks.
//
//   Fastfood    z = scales * H (gaussians * P H (signs * x))
//   orthogonal  z = scales * R H (signs * x)
//
// in blocks of a power of two coordinates, where H is the Walsh-Hadamard transform and R
// a butterfly of rotations. All steps are done in cache, for as many rows at a time as a vector
// has lanes, or for a single row.
//
// Blocks shorter than 128 are combined into tiles of 128 frequencies.
#pragma once

#include "variants.hpp"

namespace kitchenette {

template <class T> struct Structured {
    Size n_columns = 0;
    Size n_features = 0;
    Size block = 1;                             // a power of two
    Size n_frequencies = 0;                     // how many are wanted
    const std::int8_t* signs = nullptr;         // these and the next: whole tiles
    const std::int32_t* permutation = nullptr;  // Fastfood: coordinate inside the block
    const T* gaussians = nullptr;               // Fastfood
    const T* cosines = nullptr;                 // orthogonal
    const T* sines = nullptr;                   // orthogonal
    const T* scales = nullptr;
    const T* column_scales = nullptr;  // one per input column, or none
    T constant = 0;  // a constant column that is appended to the rows, unless zero
    NonlinearityParameters<T> nonlinearity;

    KITCHENETTE_INLINE Size width() const { return n_columns + (constant != 0); }
    KITCHENETTE_INLINE Size tile() const { return block < 128 ? 128 : block; }
    // The longest blocks are computed row by row, because several rows would not fit the cache.
    KITCHENETTE_INLINE bool row_by_row() const { return block > Size{1} << 16; }

    Size n_parts() const { return ceil_divide(n_frequencies, tile()); }
    Size features_per_part() const { return tile() * nonlinearity.columns_per_frequency(); }
    Size work() const { return n_frequencies; }
    Pace pace(Size lanes) const { return row_by_row() ? Pace{1, 0, 2} : Pace{lanes, lanes / 2, 2}; }
    // With the other nonlinearities, a row that is not finite has features that are not finite.
    bool checks_rows() const {
        return nonlinearity.kind == Nonlinearity::local || nonlinearity.kind == Nonlinearity::power;
    }
};

}  // namespace kitchenette

#if defined(KITCHENETTE_VARIANT)
#include "nonlinearity.hpp"

namespace kitchenette::KITCHENETTE_VARIANT {

// ---------------------------------------------------------------- input

// One step of |x|^2 of a scaled row, which both layouts sum in the order of the columns.
template <class T> KITCHENETTE_INLINE T square_and_add(T x, T sum) {
    return mul_add(broadcast(x), broadcast(x), broadcast(sum))[0];
}

template <class T> KITCHENETTE_INLINE T scaled(const T* column_scales, T value, Size column) {
    return column_scales ? value * column_scales[column] : value;
}

// One row, scaled and padded with zeros to a block.
template <class T> void read_row(const Structured<T>& map, const Rows<T>& rows, Size row, T* x) {
    if (rows.sparse()) {
        std::memset(x, 0, sizeof(T) * map.block);
        for (Size k = rows.starts[row]; k < rows.starts[row + 1]; ++k)
            x[rows.indices[k]] += scaled(map.column_scales, rows.values[k], rows.indices[k]);
    } else {
        const T* source = rows.values + row * rows.stride;
        for (Size j = 0; j < rows.n_columns; ++j) x[j] = scaled(map.column_scales, source[j], j);
        std::memset(x + rows.n_columns, 0, sizeof(T) * (map.block - rows.n_columns));
    }
    if (map.constant != 0) x[rows.n_columns] = map.constant;
}

// Up to N rows, scaled, padded with zeros to `length` columns and transposed: vector j of x
// holds column j.
template <class T> void read_lanes(const Rows<T>& rows, Size row, Size count, Size length,
                                   const T* column_scales, T* x) {
    constexpr int N = lanes<T>;
    if (rows.sparse()) {
        std::memset(x, 0, sizeof(T) * N * length);
        for (Size r = 0; r < count; ++r)
            for (Size k = rows.starts[row + r]; k < rows.starts[row + r + 1]; ++k)
                x[Size{rows.indices[k]} * N + r] +=
                    scaled(column_scales, rows.values[k], rows.indices[k]);
        return;
    }
    const T* source = rows.values + row * rows.stride;
    Size j = 0;
    for (; j + N <= rows.n_columns; j += N) {
        Vec<T> square[N];
        for (int r = 0; r < N; ++r)
            square[r] = r < count ? load(source + r * rows.stride + j) : zero<T>();
        transpose(square);
        for (int k = 0; k < N; ++k) {
            if (column_scales) square[k] = square[k] * broadcast(column_scales[j + k]);
            store(x + (j + k) * N, square[k]);
        }
    }
    for (; j < rows.n_columns; ++j)
        for (Size r = 0; r < N; ++r)
            x[j * N + r] = r < count ? scaled(column_scales, source[r * rows.stride + j], j) : T{0};
    std::memset(x + rows.n_columns * N, 0, sizeof(T) * N * (length - rows.n_columns));
}

// ---------------------------------------------------------------- both layouts

// How the two layouts find the numbers that belong to coordinate i of a tile.
template <class T, bool RowLayout> struct Coordinates {
    static constexpr Size unit = RowLayout ? lanes<T> : 1;
    // The smallest number of vectors in a finished piece, which are written together.
    static constexpr Size least_piece = RowLayout || lanes<T> < 8 ? 8 : lanes<T>;
    static KITCHENETTE_INLINE Vec<T> per_coordinate(const T* table, Size i) {
        if constexpr (RowLayout)
            return load(table + i);
        else
            return broadcast(table[i]);
    }
};

// H(signs * x) of one tile into `work`; `table` has room for a tile of numbers.
template <class T, bool RowLayout>
KITCHENETTE_INLINE void first_transform(const Structured<T>& map, const T* x, Size tile_start,
                                        T* work, T* table) {
    constexpr Size N = lanes<T>;
    using At = Coordinates<T, RowLayout>;
    const Size block = map.block, length = map.tile() / At::unit;
    const SumDifference<T> butterfly;
    // Compilers vectorize this loop, but not the conversion of single bytes.
    for (Size i = 0; i < map.tile(); ++i) table[i] = static_cast<T>(map.signs[tile_start + i]);
    const auto signed_input = [&](Size i) {
        const Size coordinate = i * At::unit;
        Vec<T> value = zero<T>();
        if (RowLayout && block < N) {  // several blocks in a vector, each starts with x again
            for (int k = 0; k < N; ++k) value.set(k, x[(coordinate + k) & (block - 1)]);
        } else {
            value = load(x + (coordinate & (block - 1)) / At::unit * N);
        }
        return value * At::per_coordinate(table, coordinate);
    };
    const Size top = block / 2 / At::unit;
    const Size left = RowLayout ? strides_left(block / N) : 1;
    const auto finished = [&](T* piece, Size offset, Size count) {
        if constexpr (RowLayout)
            finish_rows(piece, offset, count, left, block, butterfly,
                        [work](Size i, Vec<T> value) { store(work + i * N, value); });
    };
    if (top >= 4 * At::least_piece) {
        // The first pass reads the input and applies the signs, which saves a separate pass.
        pass<8>(work, length, top / 4, At::unit, Size{0}, butterfly, signed_input);
        const Size part = top / 4;
        for (Size start = 0; start < length; start += part)
            descend(work + start * N, part, top / 8, left, At::unit, start, butterfly, finished);
    } else {
        for (Size i = 0; i < length; ++i) store(work + i * N, signed_input(i));
        descend(work, length, top, left, At::unit, Size{0}, butterfly, finished);
    }
}

// The second transform of one tile: reads `work`, uses `other`, and leaves the stages of
// strides below `left` (in vectors) to `done`.
template <class T, bool RowLayout, class Done>
KITCHENETTE_INLINE void fastfood_transform(const Structured<T>& map, Size tile_start, const T* work,
                                           T* other, Size left, const Done& done) {
    constexpr Size N = lanes<T>;
    using At = Coordinates<T, RowLayout>;
    const Size block = map.block, length = map.tile() / At::unit;
    const std::int32_t* permutation = map.permutation + tile_start;
    const T* gaussians = map.gaussians + tile_start;
    const SumDifference<T> butterfly;
    if constexpr (RowLayout) {
        // The permutation is scalar, because gathers are not faster.
        for (Size base = 0; base < map.tile(); base += block)
            for (Size i = base; i < base + block; ++i) other[i] = work[base + permutation[i]];
    }
    const auto mixed = [&](Size i) {
        const Vec<T> permuted = RowLayout ? load(other + i * N)
                                          : load(work + ((i & ~(block - 1)) + permutation[i]) * N);
        return permuted * At::per_coordinate(gaussians, i * At::unit);
    };
    const Size top = block / 2 / At::unit;
    if (top >= 4 * At::least_piece) {
        pass<8>(other, length, top / 4, At::unit, Size{0}, butterfly, mixed);
        const Size part = top / 4;
        for (Size start = 0; start < length; start += part)
            descend(
                other + start * N, part, top / 8, left, At::unit, start, butterfly,
                [&](T* piece, Size offset, Size count) { done(butterfly, piece, offset, count); });
    } else {
        for (Size i = 0; i < length; ++i) store(other + i * N, mixed(i));
        descend(other, length, top, left, At::unit, Size{0}, butterfly,
                [&](T* piece, Size offset, Size count) { done(butterfly, piece, offset, count); });
    }
}

template <class T, bool RowLayout, class Done>
KITCHENETTE_INLINE void rotation_transform(const Structured<T>& map, Size tile_start, T* work,
                                           Size left, const Done& done) {
    using At = Coordinates<T, RowLayout>;
    const Rotation<T, RowLayout> butterfly{map.cosines + tile_start, map.sines + tile_start,
                                           map.block};
    descend(work, map.tile() / At::unit, map.block / 2 / At::unit, left, At::unit, Size{0},
            butterfly,
            [&](T* piece, Size offset, Size count) { done(butterfly, piece, offset, count); });
}

template <class T, bool RowLayout, class Done>
KITCHENETTE_INLINE void second_transform(const Structured<T>& map, Size tile_start, T* work,
                                         T* other, Size left, const Done& done) {
    if (map.permutation)
        fastfood_transform<T, RowLayout>(map, tile_start, work, other, left, done);
    else
        rotation_transform<T, RowLayout>(map, tile_start, work, left, done);
}

// ---------------------------------------------------------------- several rows

template <class T, class Function>
bool structured_lanes(const Structured<T>& map, const Function& function, const Rows<T>& rows,
                      const Piece& piece, const Output<T>& out, T* scratch) {
    constexpr Size N = lanes<T>;
    using Writer = LaneWriter<T, Function>;
    static_assert(Writer::chunk <= Coordinates<T, false>::least_piece);
    const Size tile = map.tile();
    T* x = scratch;
    T* work = x + map.block * N;
    T* other = work + tile * N;
    T* table = other + tile * N;
    if (!piece.continued) {
        read_lanes(rows, piece.row, piece.count, map.block, map.column_scales, x);
        if (map.constant != 0) store(x + rows.n_columns * N, broadcast(map.constant));
    }
    Writer writer{function, map.nonlinearity, out, piece.row, piece.count, {}};
    if constexpr (Function::has_row_terms) {
        Vec<T> norm = zero<T>();
        for (Size j = 0; j < map.width(); ++j)
            norm = mul_add(load(x + j * N), load(x + j * N), norm);
        writer.row_terms = function.row_terms(norm);
    }
    const Size left = strides_left(map.block);
    for (Size t = piece.first_part; t < piece.last_part; ++t) {
        const Size tile_start = t * tile;
        first_transform<T, false>(map, x, tile_start, work, table);
        const auto finish = [&](const auto& butterfly, const T* piece, Size offset, Size length) {
            for (Size i = 0; i < length; i += Writer::chunk) {
                const Size f = tile_start + offset + i;
                if (f >= map.n_frequencies) return;
                Vec<T> z[Writer::chunk];
                KITCHENETTE_UNROLL
                for (int k = 0; k < Writer::chunk; ++k) z[k] = load(piece + (i + k) * N);
                if (left == 8) [[likely]] {
                    KITCHENETTE_UNROLL
                    for (int k = 0; k < Writer::chunk; k += 8)
                        butterflies<8>(z + k, butterfly, Size{1}, offset + i + k);
                }
                KITCHENETTE_UNROLL
                for (int k = 0; k < Writer::chunk; ++k) z[k] = z[k] * broadcast(map.scales[f + k]);
                writer.write(f, z);
            }
        };
        second_transform<T, false>(map, tile_start, work, other, left, finish);
    }
    return !writer.overflow;
}

// ---------------------------------------------------------------- one row

template <class T, class Function>
bool structured_row(const Structured<T>& map, const Function& function, const Rows<T>& rows,
                    const Piece& piece, const Output<T>& out, T* scratch) {
    constexpr Size N = lanes<T>;
    const Size tile = map.tile();
    T* x = scratch;
    T* work = x + (map.block < N ? N : map.block);
    T* other = work + tile;
    T* table = other + tile;
    if (!piece.continued) read_row(map, rows, piece.row, x);
    RowWriter<T, Function> writer(function, map.nonlinearity, out, piece.row);
    if constexpr (Function::has_row_terms) {
        T norm = 0;
        for (Size j = 0; j < map.width(); ++j) norm = square_and_add(x[j], norm);
        writer.row_terms = function.row_terms(broadcast(norm));
    }
    const Size left = strides_left(map.block / N);
    for (Size t = piece.first_part; t < piece.last_part; ++t) {
        const Size tile_start = t * tile;
        first_transform<T, true>(map, x, tile_start, work, table);
        const auto finish = [&](const auto& butterfly, const T* piece, Size offset, Size length) {
            if (tile_start + offset * N >= map.n_frequencies) return;
            finish_rows(piece, offset, length, left, map.block, butterfly, [&](Size i, Vec<T> z) {
                const Size f = tile_start + i * N;
                if (f < map.n_frequencies) writer.write(f, z * load(map.scales + f));
            });
        };
        second_transform<T, true>(map, tile_start, work, other, left, finish);
    }
    return !writer.overflow;
}

// ---------------------------------------------------------------- either

template <class T> bool write_features(const Structured<T>& map, const Rows<T>& rows,
                                       const Piece& piece, const Output<T>& out, T* scratch) {
    return with_nonlinearity<T>(map.nonlinearity, [&](const auto& function) {
        return piece.count == 1 ? structured_row(map, function, rows, piece, out, scratch)
                                : structured_lanes(map, function, rows, piece, out, scratch);
    });
}

template <class T> Size scratch_size(const Structured<T>& map, Size, bool) {
    const Size block = map.block < lanes<T> ? lanes<T> : map.block;
    return (block + 2 * map.tile()) * (map.row_by_row() ? 1 : lanes<T>)+map.tile();
}

}  // namespace kitchenette::KITCHENETTE_VARIANT
#endif
