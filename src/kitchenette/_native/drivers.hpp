// Code that does not depend on the instruction set: its selection, the number of threads, and
// operations without an operator. See operator.hpp for operators.
#pragma once

#include "operator_kinds.hpp"

namespace kitchenette {

// ---------------------------------------------------------------- instruction sets

// All variants that were compiled and that this processor can run, the best last.
struct VariantList {
    const Variant* items[4];
    int count;
};
const VariantList& available_variants();
const Variant& current_variant();
bool select_variant(const char* name);  // false if it is not available

// The code of the current variant.
template <class T> const VectorCode<T>& vector_code();

// ---------------------------------------------------------------- threads

// The number of threads that OpenMP (OMP_NUM_THREADS, threadpoolctl) allows, limited by the CPU
// affinity of the process and the CPU quota of its container.
int max_threads();
bool built_with_openmp();

// ---------------------------------------------------------------- operations

// Transforms an array of shape (outer, length, inner) along the middle axis, in place.
template <class T> void fwht(T* x, Size outer, Size length, Size inner);

// Applies the nonlinearity to projections z of shape (n_rows, n_frequencies), rows `stride` apart;
// false if a number is not finite.
template <class T> bool finish(const NonlinearityParameters<T>& nonlinearity, const T* z,
                               Size stride, Size n_rows, Size n_frequencies, const Output<T>& out);

// A 64-bit hash value of every row, which depends on its numbers alone.
template <class T> void row_keys(const Rows<T>& rows, std::uint64_t* keys);

}  // namespace kitchenette
