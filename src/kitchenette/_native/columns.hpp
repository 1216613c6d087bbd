// Preparation of columns before a map: scaling, interpolation, filling of missing numbers,
// indicator columns of categories, and rows of unit length.
//
// Numbers are computed in double precision. A missing number (NaN) is not an error here, because a
// later step may fill it; an infinite one is.
#pragma once

#include "random.hpp"
#include "variants.hpp"

namespace kitchenette {

// (x - offset) * factor for every column, limited to an interval.
template <class T> struct ScaledColumns {
    Size n_columns = 0;
    Size n_features = 0;
    const double* offsets = nullptr;
    const double* factors = nullptr;
    double low = 0;
    double high = 0;

    Size n_parts() const { return 1; }
    Size features_per_part() const { return n_features; }
    Size work() const { return n_features; }
    Pace pace(Size lanes) const { return {lanes, 0, 1}; }
    bool checks_rows() const { return false; }
};

enum class ColumnKind : std::int32_t {
    copy,         // the number itself
    fill,         // [missing, substitute]
    flag,         // [missing]: 1 for a missing number, else 0
    interpolate,  // knots, then values below, at and above them
    ranks,        // the same, then the quantile function of the normal distribution
    categories,   // [width, unknown, missing], sorted keys, and their targets: see one_hot
};

// A function of one column for every item; an item has one output, or `width` for categories.
template <class T> struct MappedColumns {
    Size n_columns = 0;
    Size n_features = 0;
    Size n_items = 0;
    const std::int32_t* kinds = nullptr;
    const std::int32_t* sources = nullptr;  // the column that an item reads
    const std::int64_t* outputs = nullptr;  // its first output
    const std::int64_t* starts = nullptr;   // of its numbers, and their end
    const double* numbers = nullptr;

    Size n_parts() const { return 1; }
    Size features_per_part() const { return n_features; }
    Size work() const { return n_features + 8 * n_items; }
    Pace pace(Size lanes) const { return {lanes, 0, 1}; }
    bool checks_rows() const { return false; }
};

enum class Norm : std::int32_t { l1, l2, max };

// Rows divided by their norm; rows of zeros stay.
template <class T> struct UnitRows {
    Size n_columns = 0;
    Size n_features = 0;
    Norm norm = Norm::l2;

    Size n_parts() const { return 1; }
    Size features_per_part() const { return n_features; }
    Size work() const { return 4 * n_features; }
    Pace pace(Size lanes) const { return {lanes, 0, 1}; }
    bool checks_rows() const { return false; }
};

}  // namespace kitchenette

#if defined(KITCHENETTE_VARIANT)
#include <cmath>
#include <cstring>
#include <limits>

namespace kitchenette::KITCHENETTE_VARIANT {

// A row as contiguous numbers; a compressed one is written to memory.
template <class T> const T* dense_row(const Rows<T>& rows, Size r, T* memory) {
    if (!rows.sparse()) return rows.values + r * rows.stride;
    std::memset(memory, 0, sizeof(T) * static_cast<std::size_t>(rows.n_columns));
    for (Size k = rows.starts[r]; k < rows.starts[r + 1]; ++k)
        memory[rows.indices[k]] += rows.values[k];
    return memory;
}

template <class T> bool is_infinite(T x) {
    return std::fabs(x) > std::numeric_limits<T>::max();
}

template <class T> bool write_features(const ScaledColumns<T>& map, const Rows<T>& rows,
                                       const Piece& piece, const Output<T>& out, T* scratch) {
    bool infinite = false;
    for (Size r = piece.row; r < piece.row + piece.count; ++r) {
        const T* x = dense_row(rows, r, scratch);
        T* y = out.at(r, 0);
        for (Size j = 0; j < map.n_columns; ++j) {
            double value = (static_cast<double>(x[j]) - map.offsets[j]) * map.factors[j];
            value = value < map.low ? map.low : value;
            value = value > map.high ? map.high : value;
            y[j] = static_cast<T>(value);
            infinite |= is_infinite(x[j]) | is_infinite(y[j]);
        }
    }
    return !infinite;
}

template <class T> Size scratch_size(const ScaledColumns<T>& map, Size, bool sparse) {
    return sparse ? map.n_columns : 0;
}

// The number of sorted keys that are at most x, without branches that depend on x.
inline Size count_up_to(const double* keys, Size n, double x) {
    const double* first = keys;
    while (n > 1) {
        const Size half = n / 2;
        first += first[half - 1] <= x ? half : 0;
        n -= half;
    }
    return (first - keys) + (n == 1 && first[0] <= x ? 1 : 0);
}

// The function may jump at a knot, where it has a value of its own; it is constant outside.
inline double interpolated(const double* numbers, Size n_knots, double x) {
    if (std::isnan(x)) return x;
    const double *knots = numbers, *below = knots + n_knots, *at = below + n_knots,
                 *above = at + n_knots;
    const Size after = count_up_to(knots, n_knots, x);
    if (after == 0) return below[0];
    const Size i = after - 1;
    if (x == knots[i]) return at[i];
    if (after == n_knots) return above[i];
    const double slope = (below[after] - above[i]) / (knots[after] - knots[i]);
    return slope * (x - knots[i]) + above[i];
}

// The normal quantile of an interpolated rank. Numbers within a margin of the first or last knot,
// in the precision of the rows, get the rank 0 or 1; ranks nearer to 0 or 1 than the margin are
// moved to it.
template <class T> double normal_rank(const double* numbers, Size n_knots, T x) {
    constexpr double margin = 1e-7, least = margin - std::numeric_limits<double>::epsilon();
    if (std::isnan(x)) return x;
    double rank = interpolated(numbers, n_knots, static_cast<double>(x));
    const T after = x + static_cast<T>(margin), before = x - static_cast<T>(margin);
    if (static_cast<double>(after) > numbers[n_knots - 1]) rank = 1;
    if (static_cast<double>(before) < numbers[0]) rank = 0;
    rank = rank < least ? least : rank;
    return normal_quantile(rank > 1 - least ? 1 - least : rank);
}

// Writes zeros, and a one at the target of the category x. A negative target stands for none, and
// one below -1 for a category that is refused.
template <class T> void one_hot(const double* numbers, Size n_keys, double x, T* out) {
    const Size width = static_cast<Size>(numbers[0]);
    const double* keys = numbers + 3;
    double target = std::isnan(x) ? numbers[2] : numbers[1];
    const Size after = std::isnan(x) ? 0 : count_up_to(keys, n_keys, x);
    if (after > 0 && keys[after - 1] == x) target = keys[n_keys + after - 1];
    const T rest = target < -1 ? std::numeric_limits<T>::quiet_NaN() : T(0);
    for (Size k = 0; k < width; ++k) out[k] = rest;
    if (target >= 0) out[static_cast<Size>(target)] = 1;
}

// What an item makes of an entry.
template <class T>
void write_item(ColumnKind kind, const double* numbers, Size n, T entry, T* out) {
    const double value = static_cast<double>(entry);
    switch (kind) {
        case ColumnKind::copy:
            *out = entry;
            break;
        case ColumnKind::fill:
        case ColumnKind::flag: {
            // A missing number is compared in the precision of the rows.
            const T missing = static_cast<T>(numbers[0]);
            const bool found = std::isnan(missing) ? std::isnan(entry) : entry == missing;
            if (kind == ColumnKind::fill)
                *out = found ? static_cast<T>(numbers[1]) : entry;
            else
                *out = found ? T(1) : T(0);
            break;
        }
        case ColumnKind::interpolate:
            *out = static_cast<T>(interpolated(numbers, n / 4, value));
            break;
        case ColumnKind::ranks:
            *out = static_cast<T>(normal_rank(numbers, n / 4, entry));
            break;
        case ColumnKind::categories:
            one_hot(numbers, (n - 3) / 2, value, out);
            break;
    }
}

// Item after item, because the knots of a column take more memory than some rows.
template <class T> bool write_features(const MappedColumns<T>& map, const Rows<T>& rows,
                                       const Piece& piece, const Output<T>& out, T* scratch) {
    bool infinite = false;
    for (Size r = 0; rows.sparse() && r < piece.count; ++r)
        dense_row(rows, piece.row + r, scratch + r * map.n_columns);
    const T* x = rows.sparse() ? scratch : rows.values + piece.row * rows.stride;
    const Size stride = rows.sparse() ? map.n_columns : rows.stride;
    for (Size item = 0; item < map.n_items; ++item) {
        const double* numbers = map.numbers + map.starts[item];
        const Size n = map.starts[item + 1] - map.starts[item];
        for (Size r = 0; r < piece.count; ++r) {
            const T entry = x[r * stride + map.sources[item]];
            infinite |= is_infinite(entry);
            write_item(static_cast<ColumnKind>(map.kinds[item]), numbers, n, entry,
                       out.at(piece.row + r, map.outputs[item]));
        }
    }
    return !infinite;
}

template <class T> Size scratch_size(const MappedColumns<T>& map, Size count, bool sparse) {
    return sparse ? count * map.n_columns : 0;
}

template <class T> double norm_of(const T* x, Size n, Norm norm) {
    double sum = 0;
    for (Size j = 0; j < n; ++j) {
        const double value = std::fabs(static_cast<double>(x[j]));
        if (norm == Norm::max)
            sum = value > sum ? value : sum;
        else
            sum += norm == Norm::l1 ? value : value * value;
    }
    return norm == Norm::l2 ? std::sqrt(sum) : sum;
}

template <class T> bool write_features(const UnitRows<T>& map, const Rows<T>& rows,
                                       const Piece& piece, const Output<T>& out, T* scratch) {
    bool infinite = false;
    for (Size r = piece.row; r < piece.row + piece.count; ++r) {
        const T* x = dense_row(rows, r, scratch);
        T* y = out.at(r, 0);
        double norm = norm_of(x, map.n_columns, map.norm);
        infinite |= is_infinite(norm);
        if (norm == 0) norm = 1;
        for (Size j = 0; j < map.n_columns; ++j)
            y[j] = static_cast<T>(static_cast<double>(x[j]) / norm);
    }
    return !infinite;
}

template <class T> Size scratch_size(const UnitRows<T>& map, Size, bool sparse) {
    return sparse ? map.n_columns : 0;
}

}  // namespace kitchenette::KITCHENETTE_VARIANT
#endif
