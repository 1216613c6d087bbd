// The whole of one operation: splits it into tasks, runs them on the threads, picks the
// layout. Independent of the instruction set.
#pragma once

#include "kernels.hpp"

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

// ---------------------------------------------------------------- threads

// As many as OpenMP (OMP_NUM_THREADS, threadpoolctl) allows, and not more than the processors
// that this process may use by its affinity and by the quota of its container.
int max_threads();
bool built_with_openmp();

// ---------------------------------------------------------------- operations

// Array of shape (outer, length, inner), transformed along the middle, in place.
template <class T> void fwht(T* x, Size outer, Size length, Size inner);

// These return false if a projection overflowed; the output is then not to be used.
template <class T>
bool structured(const Structured<T>& map, const Rows<T>& rows, const Output<T>& out);
template <class T> bool dense(const Dense<T>& map, const Rows<T>& rows, const Output<T>& out);
template <class T>
bool hadamard_products(const HadamardProducts<T>& map, const Rows<T>& rows, const Output<T>& out);
template <class T>
bool sign_products(const SignProducts<T>& map, const Rows<T>& rows, const Output<T>& out);
template <class T>
bool tensor_sketch(const TensorSketch<T>& map, const Rows<T>& rows, const Output<T>& out);

// Applies the tail to projections z of shape (n_rows, n_frequencies), rows `stride` apart.
template <class T> bool finish(const TailParameters<T>& tail, const T* z, Size stride, Size n_rows,
                               Size n_frequencies, const Output<T>& out);

}  // namespace kitchenette
