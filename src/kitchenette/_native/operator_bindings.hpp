// What the bindings of operators and of products with their features have in common.
#pragma once

#include "bindings.hpp"
#include "operator.hpp"

namespace kitchenette {

// An operator that Python holds.
template <class T> struct OperatorHandle {
    SharedOperator<T> shared;
};

// Rows that the operator can read.
template <class T> Rows<T> rows_for(const Operator<T>& features, const AnyRows<T>& x) {
    const Rows<T> rows = rows_of<T>(x);
    require(rows.n_columns == features.n_columns(), "x does not have the columns of the operator");
    return rows;
}

template <class T> void require_output(const Matrix<T>& out, Size n_rows, Size n_columns) {
    require(static_cast<Size>(out.shape(0)) == n_rows, "out must have as many rows as x");
    require(static_cast<Size>(out.shape(1)) == n_columns, "out has the wrong number of columns");
    require(has_contiguous_rows(out), "the rows of out must be contiguous");
    require_aligned(out.data());
}

}  // namespace kitchenette
