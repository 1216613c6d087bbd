// An affine map of rows: a constant column, or none, followed by slope * x, or nothing. It
// represents the terms of degree zero and one of a power series exactly (Kar and Karnick 2012,
// section 4.3, "H0/1").
#pragma once

#include "variants.hpp"

namespace kitchenette {

template <class T> struct Affine {
    Size n_columns = 0;
    Size n_features = 0;
    T constant = 0;  // zero: no constant column
    T slope = 0;     // zero: no columns slope * x

    KITCHENETTE_INLINE Size first_linear() const { return constant != 0; }

    Size n_parts() const { return 1; }
    Size features_per_part() const { return n_features; }
    Size work() const { return n_features; }
    Pace pace(Size lanes) const { return {lanes, 0, 1}; }
    bool checks_rows() const { return slope == 0; }
};

}  // namespace kitchenette

#if defined(KITCHENETTE_VARIANT)
#include "nonlinearity.hpp"

namespace kitchenette::KITCHENETTE_VARIANT {

template <class T> bool write_linear(const T* x, Size n, T slope, T* out) {
    constexpr Size N = lanes<T>;
    const Vec<T> factor = broadcast(slope);
    bool fine = true;
    Size j = 0;
    for (; j + N <= n; j += N) {
        const Vec<T> value = load(x + j) * factor;
        if (any(outside(value, std::numeric_limits<T>::max()))) [[unlikely]]
            fine = false;
        store(out + j, value);
    }
    for (; j < n; ++j) {
        out[j] = x[j] * slope;
        fine &= std::isfinite(out[j]);
    }
    return fine;
}

template <class T> bool write_features(const Affine<T>& map, const Rows<T>& rows,
                                       const Piece& piece, const Output<T>& out, T*) {
    bool fine = true;
    const Size first = map.first_linear();
    for (Size r = piece.row; r < piece.row + piece.count; ++r) {
        if (map.constant != 0) *out.at(r, 0) = map.constant;
        if (map.slope == 0) continue;
        T* target = out.at(r, first);
        if (!rows.sparse()) {
            fine &= write_linear(rows.values + r * rows.stride, rows.n_columns, map.slope, target);
            continue;
        }
        std::memset(target, 0, sizeof(T) * rows.n_columns);
        for (Size k = rows.starts[r]; k < rows.starts[r + 1]; ++k) {
            T& value = target[rows.indices[k]];
            value += rows.values[k] * map.slope;
            fine &= std::isfinite(value);
        }
    }
    return fine;
}

template <class T> Size scratch_size(const Affine<T>&, Size, bool) {
    return 0;
}

}  // namespace kitchenette::KITCHENETTE_VARIANT
#endif
