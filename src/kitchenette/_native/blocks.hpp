// Blocks of rows and of their features in memory that threads share.
#pragma once

#include <cmath>

#include "variants.hpp"

namespace kitchenette {

inline constexpr Size wide_bytes = Size{1}
                                   << 24;  // of the features of a few rows that threads share

// The stride of rows of n numbers in scratch memory: whole cache lines, but not a power of two of
// them, which would map all rows to the same cache sets.
inline Size padded_stride(Size n) {
    return ceil_divide(n, 16) * 16 + 16;
}

// The rows of a matrix in the order of memory.
template <class T>
Rows<T> dense_rows_of(const T* values, Size stride, Size n_rows, Size n_columns) {
    Rows<T> rows;
    rows.n_rows = n_rows;
    rows.n_columns = n_columns;
    rows.values = values;
    rows.stride = stride;
    return rows;
}

template <class T> Output<T> output_to(T* data, Size stride, Size n_columns) {
    Output<T> out;
    out.data = data;
    out.stride = stride;
    out.n_columns = n_columns;
    return out;
}

// The rows [row, row + count) as rows of their own.
template <class T> Rows<T> some_rows(const Rows<T>& rows, Size row, Size count) {
    Rows<T> some = rows;
    some.n_rows = count;
    if (rows.sparse())
        some.starts = rows.starts + row;
    else
        some.values = rows.values + row * rows.stride;
    return some;
}

template <class Number> bool are_finite(const Number* x, Size n) {
    bool fine = true;
    for (Size i = 0; i < n; ++i) fine &= std::isfinite(x[i]);
    return fine;
}

}  // namespace kitchenette
