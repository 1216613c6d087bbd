// Dense projections z = x W with a fused nonlinearity, for Random Kitchen Sinks.
//
// The sum over the columns of a row is one chain of multiply-adds in the order of the columns,
// for one row or many, dense or sparse, so that the features of a row do not depend on the other
// rows. A BLAS does not guarantee this.
#pragma once

#include "variants.hpp"

namespace kitchenette {

// W is stored in panels of 64 frequencies: panel p holds for every input column, one after the
// other, the weights of the frequencies 64 p ... 64 p + 63, so that it is read sequentially for
// one row or many, dense or sparse.
inline constexpr Size panel = 64;

inline constexpr Size dense_rows = 192;  // rows for which the weights are read once

template <class T> struct Dense {
    Size n_columns = 0;
    Size n_features = 0;
    Size n_frequencies = 0;  // how many are wanted
    const T* panels = nullptr;
    NonlinearityParameters<T> nonlinearity;

    Size n_parts() const { return ceil_divide(n_frequencies, panel); }
    Size features_per_part() const { return panel * nonlinearity.columns_per_frequency(); }
    Size work() const { return n_frequencies * (n_columns / 8 + 1); }
    Pace pace(Size) const { return {dense_rows, 0, 4}; }
    bool checks_rows() const { return false; }
};

}  // namespace kitchenette

#if defined(KITCHENETTE_VARIANT)
#include "nonlinearity.hpp"

namespace kitchenette::KITCHENETTE_VARIANT {

// The number of columns processed together: their part of a panel stays in the second-level cache,
// and two vectors for each of them take half of a first-level cache.
inline constexpr Size depth = 8192 / (vector_bytes < 32 ? 32 : vector_bytes);

// sums[r][0 ... Vectors) += x[r][0 ... n) weights, for RowCount rows; rows of weights are
// `pitch` numbers apart, rows of sums `panel`.
template <int RowCount, int Vectors, class T>
KITCHENETTE_INLINE void multiply_tile(const T* x, Size stride, Size n, const T* weights, Size pitch,
                                      T* sums) {
    constexpr Size N = lanes<T>;
    Vec<T> a[RowCount][Vectors];
    KITCHENETTE_UNROLL
    for (int r = 0; r < RowCount; ++r) KITCHENETTE_UNROLL
    for (int v = 0; v < Vectors; ++v) a[r][v] = load(sums + r * panel + v * N);
    for (Size j = 0; j < n; ++j) {
        Vec<T> w[Vectors];
        KITCHENETTE_UNROLL
        for (int v = 0; v < Vectors; ++v) w[v] = load(weights + j * pitch + v * N);
        KITCHENETTE_UNROLL
        for (int r = 0; r < RowCount; ++r) {
            const Vec<T> value = broadcast(x[r * stride + j]);
            KITCHENETTE_UNROLL
            for (int v = 0; v < Vectors; ++v) a[r][v] = mul_add(value, w[v], a[r][v]);
        }
    }
    KITCHENETTE_UNROLL
    for (int r = 0; r < RowCount; ++r) KITCHENETTE_UNROLL
    for (int v = 0; v < Vectors; ++v) store(sums + r * panel + v * N, a[r][v]);
}

// One panel of the rows x[0 ... count), columns [0, n), n at most `depth`: tiles of six rows by two
// vectors, whose twelve sums fill the registers.
template <class T>
void multiply_rows(const T* x, Size stride, Size count, Size n, const T* weights, T* sums) {
    constexpr Size N = lanes<T>, width = 2 * N;
    // The weights of a tile are strided within a panel and map to few sets of a first-level cache,
    // so it pays to copy them if they are used for many tiles.
    const bool copied = n > 64 && count >= 24;
    alignas(64) T copy[depth * width];
    for (Size f = 0; f < panel; f += width) {
        for (Size j = 0; copied && j < n; ++j) {
            store(copy + j * width, load(weights + j * panel + f));
            store(copy + j * width + N, load(weights + j * panel + f + N));
        }
        const T* w = copied ? copy : weights + f;
        const Size pitch = copied ? width : panel;
        Size r = 0;
        for (; r + 6 <= count; r += 6)
            multiply_tile<6, 2>(x + r * stride, stride, n, w, pitch, sums + r * panel + f);
        for (; r + 2 <= count; r += 2)
            multiply_tile<2, 2>(x + r * stride, stride, n, w, pitch, sums + r * panel + f);
        for (; r < count; ++r)
            multiply_tile<1, 2>(x + r * stride, stride, n, w, pitch, sums + r * panel + f);
    }
}

// One panel of a single row: `column(k)` is the column of values[k]. Reads the weights
// sequentially, which dominates the cost of a single row.
template <class T, class Column> KITCHENETTE_INLINE void multiply_row(const T* values, Size n,
                                                                      const Column& column,
                                                                      const T* weights, T* sums) {
    constexpr int N = lanes<T>;
    constexpr int vectors = panel / N < 8 ? panel / N : 8;
    for (Size f = 0; f < panel; f += vectors * N) {
        Vec<T> a[vectors];
        KITCHENETTE_UNROLL
        for (int v = 0; v < vectors; ++v) a[v] = zero<T>();
        for (Size k = 0; k < n; ++k) {
            const Vec<T> value = broadcast(values[k]);
            const T* row = weights + column(k) * panel + f;
            KITCHENETTE_UNROLL
            for (int v = 0; v < vectors; ++v) a[v] = mul_add(value, load(row + v * N), a[v]);
        }
        KITCHENETTE_UNROLL
        for (int v = 0; v < vectors; ++v) store(sums + f + v * N, a[v]);
    }
}

template <class T, class Function>
KITCHENETTE_INLINE bool write_panel(const Dense<T>& map, const Function& function, const T* sums,
                                    Size f, Size row, const Output<T>& out) {
    RowWriter<T, Function> writer(function, map.nonlinearity, out, row);
    for (Size k = 0; k < panel; k += lanes<T>) writer.write(f + k, load(sums + k));
    return !writer.overflow;
}

// One panel of one row.
template <class T> void project_row(const Rows<T>& rows, Size row, const T* weights, T* sums) {
    if (rows.sparse()) {
        const Size start = rows.starts[row], n = rows.starts[row + 1] - start;
        const std::int32_t* columns = rows.indices + start;
        multiply_row(
            rows.values + start, n, [columns](Size k) { return Size{columns[k]}; }, weights, sums);
    } else {
        multiply_row(
            rows.values + row * rows.stride, rows.n_columns, [](Size k) { return k; }, weights,
            sums);
    }
}

template <class T, class Function>
bool dense_features(const Dense<T>& map, const Function& function, const Rows<T>& rows,
                    const Piece& piece, const Output<T>& out, T* sums) {
    bool fine = true;
    const Size panel_size = rows.n_columns * panel;
    for (Size p = piece.first_part; p < piece.last_part; ++p) {
        const T* weights = map.panels + p * panel_size;
        if (rows.sparse() || piece.count == 1) {
            for (Size r = piece.row; r < piece.row + piece.count; ++r) {
                project_row(rows, r, weights, sums);
                fine &= write_panel(map, function, sums, p * panel, r, out);
            }
            continue;
        }
        std::memset(sums, 0, sizeof(T) * piece.count * panel);
        for (Size j = 0; j < rows.n_columns; j += depth) {
            const Size n = rows.n_columns - j < depth ? rows.n_columns - j : depth;
            multiply_rows(rows.values + piece.row * rows.stride + j, rows.stride, piece.count, n,
                          weights + j * panel, sums);
        }
        for (Size r = 0; r < piece.count; ++r)
            fine &= write_panel(map, function, sums + r * panel, p * panel, piece.row + r, out);
    }
    return fine;
}

template <class T> bool write_features(const Dense<T>& map, const Rows<T>& rows, const Piece& piece,
                                       const Output<T>& out, T* scratch) {
    return with_nonlinearity<T>(map.nonlinearity, [&](const auto& function) {
        return dense_features(map, function, rows, piece, out, scratch);
    });
}

template <class T> Size scratch_size(const Dense<T>&, Size count, bool) {
    return count * panel;
}

}  // namespace kitchenette::KITCHENETTE_VARIANT
#endif
