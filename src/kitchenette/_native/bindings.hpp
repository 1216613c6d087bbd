// Array types for the Python bindings, and checks of their shapes.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <variant>

#include "variants.hpp"

namespace kitchenette {

namespace nb = nanobind;

template <class T> using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Matrix = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;
template <class T> using Table = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T> using OptionalVector = std::optional<Vector<const T>>;

inline void require(bool condition, const char* what) {
    if (!condition) throw std::invalid_argument(what);
}

template <class T> Size length_of(const OptionalVector<T>& array) {
    return array ? static_cast<Size>(array->size()) : 0;
}

template <class T> const T* pointer_of(const OptionalVector<T>& array) {
    return array ? array->data() : nullptr;
}

// The stride of a dimension of length one is meaningless and ignored.
template <class T> bool has_contiguous_rows(const Matrix<T>& x) {
    return x.shape(0) == 0 || x.shape(1) <= 1 || x.stride(1) == 1;
}

template <class T> void require_aligned(const T* p) {
    require(reinterpret_cast<std::uintptr_t>(p) % alignof(T) == 0, "an array is not aligned");
}

template <class T> Rows<T> rows_of(const Matrix<const T>& x) {
    require(has_contiguous_rows(x), "the rows of x must be contiguous");
    require_aligned(x.data());
    Rows<T> rows;
    rows.n_rows = static_cast<Size>(x.shape(0));
    rows.n_columns = static_cast<Size>(x.shape(1));
    rows.values = x.data();
    rows.stride = x.stride(0);
    return rows;
}

template <class Array> bool has_shape(const Array& array, Size n_rows, Size n_columns) {
    return static_cast<Size>(array.shape(0)) == n_rows &&
           static_cast<Size>(array.shape(1)) == n_columns;
}

inline bool is_power_of_two(Size n) {
    return n >= 1 && (n & (n - 1)) == 0;
}

// True if all indices are in [0, limit). Branch-free, because it runs before every call.
inline bool all_below(const std::int32_t* indices, std::size_t count, Size limit) {
    bool inside = true;
    for (std::size_t k = 0; k < count; ++k) inside &= indices[k] >= 0 && indices[k] < limit;
    return inside;
}

// A matrix, or (values, column indices, row starts, number of columns) of a CSR matrix.
template <class T> using AnyRows =
    std::variant<Matrix<const T>, std::tuple<Vector<const T>, Vector<const std::int32_t>,
                                             Vector<const std::int64_t>, Size>>;

template <class T> Rows<T> rows_of(const std::tuple<Vector<const T>, Vector<const std::int32_t>,
                                                    Vector<const std::int64_t>, Size>& csr) {
    const auto& [values, indices, starts, n_columns] = csr;
    require(starts.size() >= 1, "the row starts must not be empty");
    require(values.size() == indices.size(), "values and column indices differ in length");
    require_aligned(values.data());
    require_aligned(indices.data());
    require_aligned(starts.data());
    const Size n_rows = static_cast<Size>(starts.size()) - 1;
    const std::int64_t* start = starts.data();
    require(start[0] >= 0 && start[n_rows] <= static_cast<Size>(values.size()),
            "the row starts do not fit the number of values");
    for (Size r = 0; r < n_rows; ++r)
        require(start[r] <= start[r + 1], "the row starts must not decrease");
    require(all_below(indices.data(), indices.size(), n_columns),
            "a column index lies outside the matrix");
    Rows<T> rows;
    rows.n_rows = n_rows;
    rows.n_columns = n_columns;
    rows.values = values.data();
    rows.indices = indices.data();
    rows.starts = start;
    return rows;
}

template <class T> Rows<T> rows_of(const AnyRows<T>& x) {
    return std::visit([](const auto& kind) { return rows_of<T>(kind); }, x);
}

template <class T> Output<T> output_of(const Matrix<T>& out, Size n_rows) {
    require(static_cast<Size>(out.shape(0)) == n_rows, "out must have as many rows as x");
    require(out.shape(1) >= 1, "out must have columns");
    require(has_contiguous_rows(out), "the rows of out must be contiguous");
    require_aligned(out.data());
    Output<T> result;
    result.data = out.data();
    result.stride = out.stride(0);
    result.n_columns = static_cast<Size>(out.shape(1));
    return result;
}

void bind_operators(nb::module_& m);
void bind_products(nb::module_& m);
void bind_statistics(nb::module_& m);

}  // namespace kitchenette
