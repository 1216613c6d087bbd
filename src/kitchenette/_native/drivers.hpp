// What does not depend on the instruction set: which one is used, the threads, and operations that
// need no operator. See operator.hpp for those that do.
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

// As many as OpenMP (OMP_NUM_THREADS, threadpoolctl) allows, and not more than the processors
// that this process may use by its affinity and by the quota of its container.
int max_threads();
bool built_with_openmp();

// ---------------------------------------------------------------- operations

// Array of shape (outer, length, inner), transformed along the middle, in place.
template <class T> void fwht(T* x, Size outer, Size length, Size inner);

// Applies the tail to projections z of shape (n_rows, n_frequencies), rows `stride` apart; false if
// a number is not finite.
template <class T> bool finish(const TailParameters<T>& tail, const T* z, Size stride, Size n_rows,
                               Size n_frequencies, const Output<T>& out);

}  // namespace kitchenette
