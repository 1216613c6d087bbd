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

#include "simd.hpp"

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

// For each of m numbers, how many of n sorted keys are at most that number. All searches advance
// together, so that their loads from memory overlap.
template <class T> void count_up_to(const double* keys, Size n, const T* x, Size m, Size* counts) {
    for (Size k = 0; k < m; ++k) counts[k] = 0;
    while (n > 1) {
        const Size half = n / 2;
        for (Size k = 0; k < m; ++k)
            counts[k] += keys[counts[k] + half - 1] <= static_cast<double>(x[k]) ? half : 0;
        n -= half;
    }
    for (Size k = 0; n == 1 && k < m; ++k)
        counts[k] += keys[counts[k]] <= static_cast<double>(x[k]) ? 1 : 0;
}

// The function may jump at a knot, where it has a value of its own; it is constant outside. `after`
// is the number of knots that are at most x.
inline double interpolated(const double* numbers, Size n_knots, double x, Size after) {
    if (std::isnan(x)) return x;
    const double *knots = numbers, *below = knots + n_knots, *at = below + n_knots,
                 *above = at + n_knots;
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
template <class T> double normal_rank(const double* numbers, Size n_knots, T x, Size after) {
    constexpr double margin = 1e-7, least = margin - std::numeric_limits<double>::epsilon();
    if (std::isnan(x)) return x;
    double rank = interpolated(numbers, n_knots, static_cast<double>(x), after);
    const T above = x + static_cast<T>(margin), below = x - static_cast<T>(margin);
    if (static_cast<double>(above) > numbers[n_knots - 1]) rank = 1;
    if (static_cast<double>(below) < numbers[0]) rank = 0;
    rank = rank < least ? least : rank;
    return normal_quantile(rank > 1 - least ? 1 - least : rank);
}

// Writes zeros, and a one at the target of the category x. A negative target stands for none, and
// one below -1 for a category that is refused. `after` is the number of keys that are at most x.
template <class T> void one_hot(const double* numbers, Size n_keys, T x, Size after, T* out) {
    const Size width = static_cast<Size>(numbers[0]);
    const double* keys = numbers + 3;
    double target = std::isnan(x) ? numbers[2] : numbers[1];
    if (after > 0 && keys[after - 1] == static_cast<double>(x)) target = keys[n_keys + after - 1];
    const T rest = target < -1 ? std::numeric_limits<T>::quiet_NaN() : T(0);
    for (Size k = 0; k < width; ++k) out[k] = rest;
    if (target >= 0) out[static_cast<Size>(target)] = 1;
}

// What an item makes of an entry.
template <class T>
void write_item(ColumnKind kind, const double* numbers, Size n, T entry, Size after, T* out) {
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
            *out = static_cast<T>(interpolated(numbers, n / 4, static_cast<double>(entry), after));
            break;
        case ColumnKind::ranks:
            *out = static_cast<T>(normal_rank(numbers, n / 4, entry, after));
            break;
        case ColumnKind::categories:
            one_hot(numbers, (n - 3) / 2, entry, after, out);
            break;
    }
}

// The place of the sorted keys of an item among its numbers, and how many there are.
struct Keys {
    Size first = 0;
    Size count = 0;
};

inline Keys keys_of(ColumnKind kind, Size n) {
    if (kind == ColumnKind::interpolate || kind == ColumnKind::ranks) return {0, n / 4};
    if (kind == ColumnKind::categories) return {3, (n - 3) / 2};
    return {};
}

// Item after item, because the knots of a column take more memory than some rows.
template <class T> bool write_features(const MappedColumns<T>& map, const Rows<T>& rows,
                                       const Piece& piece, const Output<T>& out, T* scratch) {
    constexpr Size most = lanes<T>;
    bool infinite = false;
    T entries[most];
    Size counts[most] = {};
    for (Size begin = 0; begin < piece.count; begin += most) {
        const Size first = piece.row + begin, left = piece.count - begin;
        const Size m = left < most ? left : most;
        for (Size r = 0; rows.sparse() && r < m; ++r)
            dense_row(rows, first + r, scratch + r * map.n_columns);
        const T* x = rows.sparse() ? scratch : rows.values + first * rows.stride;
        const Size stride = rows.sparse() ? map.n_columns : rows.stride;
        for (Size item = 0; item < map.n_items; ++item) {
            const ColumnKind kind = static_cast<ColumnKind>(map.kinds[item]);
            const double* numbers = map.numbers + map.starts[item];
            const Size n = map.starts[item + 1] - map.starts[item];
            for (Size r = 0; r < m; ++r) {
                entries[r] = x[r * stride + map.sources[item]];
                infinite |= is_infinite(entries[r]);
            }
            const Keys keys = keys_of(kind, n);
            if (keys.count > 0) count_up_to(numbers + keys.first, keys.count, entries, m, counts);
            for (Size r = 0; r < m; ++r)
                write_item(kind, numbers, n, entries[r], keys.count > 0 ? counts[r] : 0,
                           out.at(first + r, map.outputs[item]));
        }
    }
    return !infinite;
}

template <class T> Size scratch_size(const MappedColumns<T>& map, Size count, bool sparse) {
    const Size together = count < lanes<T> ? count : lanes<T>;
    return sparse ? together * map.n_columns : 0;
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
