// What the instruction-set variants offer to the rest of the module: plain structures
// and a table of functions per element type. No instruction set is visible here.
#pragma once

#include <cstdint>

// Functions shared by code for several instruction sets must never be left to the linker,
// which would keep one copy, compiled for one of them.
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

enum class Tail {
    identity,  // z itself
    sincos,    // amplitude cos z, amplitude sin z, side by side
    offset,    // amplitude cos(z + term)
    local,     // exp(z - term - row_weight |x|^2)
    power,     // term |x|^row_power p(z / |x|), or term p(z): polynomials p by a recurrence
};

template <class T> struct TailParameters {
    Tail kind = Tail::identity;
    T amplitude = 1;
    const T* terms = nullptr;  // one per frequency (offset, local, power)
    T unpaired_offset = 0;     // sincos with an odd number of columns: the last is an offset cosine
    T row_weight = 0;          // local
    // power: p_0 = 1, p_1 = slopes[0] t, p_{n+1} = slopes[n] t p_n + drags[n] p_{n-1}; frequency
    // f takes degree degrees[f].
    const std::int32_t* degrees = nullptr;
    const T* slopes = nullptr;
    const T* drags = nullptr;
    Size row_power = -1;  // negative: rows are not normalised
};

template <class T> struct Output {
    T* data = nullptr;
    Size stride = 0;
    Size n_columns = 0;
};

// ---------------------------------------------------------------- structured projections

// z = scales * second(first(signs * x)) in blocks of a power of two: see structured.hpp.
template <class T> struct Structured {
    Size block = 1;
    Size n_frequencies = 0;  // how many are wanted
    Size n_padded = 0;       // the length of the arrays: whole tiles
    const std::int8_t* signs = nullptr;
    const std::int32_t* permutation = nullptr;  // Fastfood: coordinate inside the block
    const T* gaussians = nullptr;               // Fastfood
    const T* cosines = nullptr;                 // orthogonal
    const T* sines = nullptr;                   // orthogonal
    const T* scales = nullptr;
    const T* column_scales = nullptr;  // one per input column, or none
    T constant = 0;                    // one more column that is the same in every row, or none
    TailParameters<T> tail;
    KITCHENETTE_INLINE Size width(const Rows<T>& rows) const {
        return rows.n_columns + (constant != 0);
    }
    // Several rows at a time need several times the cache: not for the longest blocks.
    KITCHENETTE_INLINE bool row_by_row() const { return block > Size{1} << 16; }
    KITCHENETTE_INLINE Size tile() const { return block < 128 ? 128 : block; }
};

// z = x W with dense W, stored in panels of 64 frequencies: panel p holds for every input
// column, one after the other, the weights of the frequencies 64 p ... 64 p + 63. So one
// row or many, dense or sparse, read it from beginning to end.
inline constexpr Size panel = 64;

template <class T> struct Dense {
    Size n_frequencies = 0;  // how many are wanted
    const T* panels = nullptr;
    TailParameters<T> tail;
};

// ---------------------------------------------------------------- products of projections

// A feature is weight * z_1 ... z_n, each z_j a projection of the row on signs: see products.hpp.
// Numbers per feature come in whole groups of `product_group`.
inline constexpr Size product_group = 16;

// z_j is coordinate indices[j][feature] of H (signs[j] * x), in a tile that holds one block or
// several short ones, each with signs of its own; the coordinate after the last is one.
template <class T> struct HadamardProducts {
    Size n_features = 0;  // how many are wanted
    Size n_padded = 0;    // the length of the arrays: whole groups
    Size n_factors = 0;
    Size block = 1;                         // a power of two
    const std::int8_t* signs = nullptr;     // (n_factors, tile)
    const std::int32_t* indices = nullptr;  // (n_factors, n_padded)
    const std::int32_t* depths = nullptr;   // per group: the factors that are not all one
    const T* weights = nullptr;
    const T* column_scales = nullptr;
    KITCHENETTE_INLINE bool row_by_row() const {
        return block > Size{1} << 16 || n_factors * block > Size{1} << 18;
    }
    KITCHENETTE_INLINE Size tile() const { return block < 128 ? 128 : block; }
};

// z_j = <bits, x> with bit k of a word as the sign of feature 64 p + k of panel p, a word per
// column. A panel owns the factors starts[p] ... starts[p + 1]; where a bit of `used` is not
// set, the feature has no such factor.
template <class T> struct SignProducts {
    Size n_features = 0;
    const std::uint64_t* bits = nullptr;  // (all factors of all panels, n_columns)
    const std::uint64_t* used = nullptr;  // (all factors of all panels)
    const std::int64_t* starts = nullptr;
    const T* weights = nullptr;
    const T* column_scales = nullptr;
};

// ---------------------------------------------------------------- tensor sketches

// The count sketch of a row's tensor power: see tensor_sketch.hpp.
template <class T> struct TensorSketch {
    Size degree = 1;
    Size n_inputs = 0;                      // the columns of a row, or one more that is always 1
    Size n_buckets = 1;                     // D
    const std::int32_t* buckets = nullptr;  // one per factor and input
    const T* weights = nullptr;             // likewise: a sign and a scale
    Size length = 1;                        // of the transforms, a power of two
    const T* roots = nullptr;   // six numbers for each fourth of the length, see fourier.hpp
    const T* chirp = nullptr;   // D complex numbers, or none
    const T* filter = nullptr;  // the chirp's spectrum
    const std::int32_t* order = nullptr;  // where in the spectrum each output column is, or none
    const T* factors = nullptr;           // what it is multiplied with
};

// ---------------------------------------------------------------- the table

inline constexpr Size most_sums = 512;  // of columns at a time: they stay in the cache

template <class T> struct Kernels {
    int lanes;

    // Walsh-Hadamard transforms in place.
    void (*hadamard_row)(T* x, Size length, Size block);
    void (*hadamard_runs)(T* x, Size length, Size run);
    void (*hadamard_columns)(T* x, Size length, Size run, Size begin, Size end, T* scratch);
    void (*hadamard_pass)(T* x, Size length, Size q, Size run, Size begin, Size end);

    // Structured features of the rows [row, row + count), count <= lanes, tiles
    // [first_tile, last_tile). `scratch` holds structured_scratch() numbers, aligned to 64
    // bytes. Returns false if a value overflowed.
    Size (*structured_scratch)(const Structured<T>& map);
    bool (*structured_lanes)(const Structured<T>& map, const Rows<T>& rows, Size row, Size count,
                             Size first_tile, Size last_tile, const Output<T>& out, T* scratch);
    bool (*structured_row)(const Structured<T>& map, const Rows<T>& rows, Size row, Size first_tile,
                           Size last_tile, const Output<T>& out, T* scratch);

    // Dense features of the rows [row, row + count), panels [first_panel, last_panel).
    Size (*dense_scratch)(Size count);
    bool (*dense_rows)(const Dense<T>& map, const Rows<T>& rows, Size row, Size count,
                       Size first_panel, Size last_panel, const Output<T>& out, T* scratch);

    // Products of the rows [row, row + count): count <= lanes and groups of features
    // [first_group, last_group), or any count and panels [first_panel, last_panel).
    Size (*hadamard_products_scratch)(const HadamardProducts<T>& map);
    bool (*hadamard_products_lanes)(const HadamardProducts<T>& map, const Rows<T>& rows, Size row,
                                    Size count, Size first_group, Size last_group,
                                    const Output<T>& out, T* scratch);
    bool (*hadamard_products_row)(const HadamardProducts<T>& map, const Rows<T>& rows, Size row,
                                  Size first_group, Size last_group, const Output<T>& out,
                                  T* scratch);
    Size (*sign_products_scratch)(Size count);
    bool (*sign_products_rows)(const SignProducts<T>& map, const Rows<T>& rows, Size row,
                               Size count, Size first_panel, Size last_panel, const Output<T>& out,
                               T* scratch);

    // Tensor sketches of the rows [row, row + count), count <= lanes.
    Size (*tensor_sketch_scratch)(const TensorSketch<T>& map, const Rows<T>& rows);
    bool (*tensor_sketch_rows)(const TensorSketch<T>& map, const Rows<T>& rows, Size row,
                               Size count, const Output<T>& out, T* scratch);

    // Sums of columns, and centred rows in strips: see strips.hpp.
    T (*add_sums)(const T* z, Size stride, Size n_rows, Size n_columns, const double* weights,
                  double* sums);
    void (*centre_rows)(const T* z, Size stride, Size n_rows, Size n_columns, const T* high,
                        const T* low, const double* roots, T* strips, Size width, Size distance,
                        bool past_caches);

    // Products of two strips. Null where a BLAS does better.
    Size strip_width;
    void (*multiply_strips)(const T* left, const T* right, Size n_rows, Size n_right, T* product,
                            Size stride, bool add, const T* wanted);

    // The tail alone, on projections that were computed elsewhere: frequencies
    // [begin, begin + count) of one row.
    bool (*finish_row)(const TailParameters<T>& tail, const T* z, Size begin, Size count,
                       T* out_row, Size n_columns);
};

// One instruction set.
struct Variant {
    const char* name;
    const Kernels<float>* kernels_float;
    const Kernels<double>* kernels_double;
};

template <class T> const Kernels<T>& kernels_of(const Variant& variant);
template <> inline const Kernels<float>& kernels_of(const Variant& v) {
    return *v.kernels_float;
}
template <> inline const Kernels<double>& kernels_of(const Variant& v) {
    return *v.kernels_double;
}

}  // namespace kitchenette
