// The interface of the code for one instruction set: plain structures, and a table of functions per
// element type. Nothing here depends on an instruction set.
#pragma once

#include <cstdint>

// Functions shared by code for several instruction sets must be inlined: the linker would keep a
// single copy, compiled for one of them.
#if defined(_MSC_VER) && !defined(__clang__)
#define KITCHENETTE_INLINE __forceinline
#define KITCHENETTE_NOINLINE __declspec(noinline)
#else
#define KITCHENETTE_INLINE inline __attribute__((always_inline))
#define KITCHENETTE_NOINLINE __attribute__((noinline))
#endif

namespace kitchenette {

using Size = std::int64_t;

// ---------------------------------------------------------------- rows of input

// Rows of numbers, dense or compressed (CSR).
template <class T> struct Rows {
    Size n_rows = 0;
    Size n_columns = 0;
    const T* values = nullptr;
    Size stride = 0;                        // dense: numbers between rows
    const std::int32_t* indices = nullptr;  // CSR: columns of the values
    const std::int64_t* starts = nullptr;   // CSR: row r owns values starts[r] ... starts[r + 1]
    KITCHENETTE_INLINE bool sparse() const { return starts != nullptr; }
};

// ---------------------------------------------------------------- what becomes of a projection

enum class Nonlinearity {
    identity,  // z itself
    sincos,    // amplitude cos z, amplitude sin z, side by side
    offset,    // amplitude cos(z + term)
    local,     // exp(z - term - row_weight |x|^2)
    power,     // term |x|^row_power p(z / |x|), or term p(z): polynomials p by a recurrence
};

template <class T> struct NonlinearityParameters {
    Nonlinearity kind = Nonlinearity::identity;
    T amplitude = 1;
    const T* terms = nullptr;  // one per frequency (offset, local, power)
    T unpaired_offset = 0;     // sincos with an odd number of columns: the last is an offset cosine
    T row_weight = 0;          // local
    // power: p_0 = 1, p_1 = leading[0] t, p_{n+1} = leading[n] t p_n + trailing[n] p_{n-1};
    // frequency f takes degree degrees[f].
    const std::int32_t* degrees = nullptr;
    const T* leading = nullptr;
    const T* trailing = nullptr;
    Size row_power = -1;  // negative: rows are not normalized
    KITCHENETTE_INLINE Size columns_per_frequency() const {
        return kind == Nonlinearity::sincos ? 2 : 1;
    }
};

// The destination of features: at(i, j) is the address for row i and column j. It may be a window
// of a larger matrix that begins at some row and column.
template <class T> struct Output {
    T* data = nullptr;
    Size stride = 0;
    Size n_columns = 0;  // of the whole matrix
    Size first_row = 0;
    Size first_column = 0;
    KITCHENETTE_INLINE T* at(Size row, Size column) const {
        return data + (row - first_row) * stride + (column - first_column);
    }
};

// ---------------------------------------------------------------- pieces of work

// A unit of work of one thread: the parts [first_part, last_part) of the features of the rows
// [row, row + count).
struct Piece {
    Size row = 0;
    Size count = 0;
    Size first_part = 0;
    Size last_part = 0;
    // The preceding call wrote the parts before first_part of the same rows with the same scratch
    // memory, so that intermediate results common to all parts are reused.
    bool continued = false;
};

// The best number of rows to compute together. A last group of at most `few` rows is cheaper row by
// row. With few rows the parts are divided into the given number of shares per thread.
struct Pace {
    Size rows = 1;
    Size few = 0;
    Size shares_per_thread = 2;
};

KITCHENETTE_INLINE Size ceil_divide(Size a, Size b) {
    return (a + b - 1) / b;
}

// ---------------------------------------------------------------- the table

// The vector code of one kind of operator: the size of the scratch memory for `count` rows, and a
// function that writes a piece of at most Pace::rows rows and returns whether all of its numbers
// are finite. Scratch memory is aligned to 64 bytes.
template <class T, template <class> class Parameters> struct OperatorCode {
    Size (*scratch_size)(const Parameters<T>& p, Size count, bool sparse);
    bool (*write)(const Parameters<T>& p, const Rows<T>& rows, const Piece& piece,
                  const Output<T>& out, T* scratch);
};

inline constexpr Size most_sums = 512;  // columns whose sums are computed together, in cache

template <class T> struct CommonCode {
    int lanes;

    // Walsh-Hadamard transforms in place.
    void (*hadamard_row)(T* x, Size length, Size block);
    void (*hadamard_runs)(T* x, Size length, Size run);
    void (*hadamard_columns)(T* x, Size length, Size run, Size begin, Size end, T* scratch);
    void (*hadamard_pass)(T* x, Size length, Size q, Size run, Size begin, Size end);

    // The nonlinearity alone, on the projections of one row that were computed elsewhere.
    bool (*finish_row)(const NonlinearityParameters<T>& nonlinearity, const T* z,
                       Size n_frequencies, Size row, const Output<T>& out);

    // Sums of columns, and centered rows in strips: see strips.hpp.
    T (*add_sums)(const T* z, Size stride, Size n_rows, Size n_columns, const double* weights,
                  double* sums);
    void (*center_rows)(const T* z, Size stride, Size n_rows, Size n_columns, const T* high,
                        const T* low, const double* weight_roots, T* strips, Size width,
                        Size distance, bool past_caches);

    // Products of two strips. Null where a BLAS does better.
    Size strip_width;
    void (*multiply_strips)(const T* left, const T* right, Size n_rows, Size n_right, T* product,
                            Size stride, bool add, const T* wanted);

    // Products of features and weights: see linear.hpp.
    void (*add_dot_products)(const T* features, Size stride, Size n_rows, Size n_features,
                             const T* weights, Size n_targets, double* sums);
    void (*add_outer_products)(const T* features, Size stride, Size n_rows, Size n_features,
                               const T* factors, Size n_targets, double* sums);
};

}  // namespace kitchenette
