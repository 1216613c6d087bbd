// What a Gram matrix in double precision needs: sums of rows, and products of rows centred at
// their mean, added to one triangle of it.
#pragma once

#include <type_traits>
#include <vector>

#include "threads.hpp"

namespace kitchenette {

// sums[j] += sum of weights[i] z(i, j), each column in the order of the rows; weights may be
// null. Returns the largest magnitude of all numbers that are numbers.
template <class T> double add_column_sums(const T* z, Size stride, Size n_rows, Size n_columns,
                                          const double* weights, double* sums);

// Two functions of the BLAS, as SciPy hands them to others: Fortran's arguments, 32-bit numbers.
template <class T> struct BlasFunctions {
    void (*gemm)(char*, char*, int*, int*, int*, T*, T*, int*, T*, int*, T*, T*, int*);
    void (*syrk)(char*, char*, int*, int*, T*, T*, int*, T*, T*, int*);
};

struct Blas {
    BlasFunctions<float> in_single;
    BlasFunctions<double> in_double;

    template <class T> const BlasFunctions<T>& of() const {
        if constexpr (std::is_same_v<T, float>)
            return in_single;
        else
            return in_double;
    }
};

// Whether products call the BLAS. Every thread has tiles of its own, so one with a single thread
// serves best then.
bool products_call_blas();

// How rows lie in memory so that a product can read them: cut into chunks of `depth` rows, these
// into strips of `width` columns, and a strip stored row by row. The last strip is filled up with
// zeros. One strip and one chunk are rows as the BLAS knows them.
struct Layout {
    Size n_columns, width, depth;

    Size strips() const { return (n_columns + width - 1) / width; }
    Size columns_of(Size strip) const {
        return width < n_columns - strip * width ? width : n_columns - strip * width;
    }
    Size begin(Size chunk, Size strip) const { return (chunk * strips() + strip) * depth * width; }
};

// Centred rows that wait for their product. Their layout is that of the instruction set that was
// selected when the memory was allocated. No method allocates.
template <class T> class WaitingRows {
  public:
    WaitingRows(Size capacity, Size n_columns);

    // Rows first, first + 1, ... become (z - mean) * roots, computed in T; roots may be null.
    void centre(const T* z, Size stride, Size n_rows, const double* mean, const double* roots,
                Size first);
    // The same, computed in double precision and then rounded.
    void centre_and_round(const double* z, Size stride, Size n_rows, const double* mean,
                          const double* roots, Size first);
    // One row as it is.
    void put(const double* row, Size place);

    const VectorCode<T>& code() const { return *code_; }
    const Layout& layout() const { return layout_; }
    T* data() const { return memory_.data(); }

  private:
    T* place_of(Size row) const {
        return data() + layout_.begin(row / layout_.depth, 0) + row % layout_.depth * layout_.width;
    }

    const VectorCode<T>* code_;
    Layout layout_;
    bool past_caches_;
    AlignedBuffer<T> memory_, mean_parts_;
};

// Part of a matrix: a square on its diagonal, or a rectangle below it.
struct Tile {
    Size row, column, n_rows, n_columns;
};

// The sums of products of rows of one width, and where their terms are computed.
template <class T> class RowProducts {
  public:
    RowProducts(const WaitingRows<T>& rows, Size n_rows, Size n_targets);

    // Adds scale * A'A to a symmetric matrix in LAPACK's rectangular full packed format
    // (TRANSR = 'N', UPLO = 'L'), where A are the first n_rows rows, and scale * A'B to the matrix
    // `cross`, stored by rows, where B are those of `targets`, if there are any.
    void add(const WaitingRows<T>& rows, const WaitingRows<T>* targets, Size n_rows, double scale,
             const Blas& blas, double* packed, double* cross) const;

  private:
    Size width_, n_targets_;
    std::vector<Tile> tiles_;
    ThreadScratch<T> scratch_;

    Size tasks() const;
};

}  // namespace kitchenette
