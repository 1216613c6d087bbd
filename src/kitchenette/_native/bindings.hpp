// What the files that bind native code to Python share: arrays and the checks of their shapes.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <optional>
#include <stdexcept>

#include "kernels.hpp"

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

// Strides mean something only where there is more than one number to step over.
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

void bind_statistics(nb::module_& m);

}  // namespace kitchenette
