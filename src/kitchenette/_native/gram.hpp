// Gram matrices in single or double precision: column sums, and products of centered rows, which
// are added to one triangle of the matrix.
#pragma once

#include <vector>

#include "blas.hpp"
#include "threads.hpp"

namespace kitchenette {

// sums[j] += sum of weights[i] z(i, j), each column in the order of the rows; weights may be
// null. Returns the largest magnitude of all numbers that are not NaN.
template <class T> double add_column_sums(const T* z, Size stride, Size n_rows, Size n_columns,
                                          const double* weights, double* sums);

// Whether products call the BLAS. It should then be limited to one thread, because several threads
// call it for separate tiles.
bool products_call_blas();

// The memory layout of rows for products: chunks of `depth` rows, which are cut into strips of
// `width` columns, each stored row by row. The last strip is padded with zeros. With a single strip
// and chunk it is the ordinary layout of the BLAS.
struct Layout {
    Size n_columns, width, depth;

    Size strips() const { return (n_columns + width - 1) / width; }
    Size columns_of(Size strip) const {
        return width < n_columns - strip * width ? width : n_columns - strip * width;
    }
    Size begin(Size chunk, Size strip) const { return (chunk * strips() + strip) * depth * width; }
};

// A buffer of centered rows to be multiplied, in the layout of the instruction set that was
// selected at its allocation. No method allocates.
template <class T> class BufferedRows {
  public:
    BufferedRows(Size capacity, Size n_columns);

    // Sets the rows first, first + 1, ... to (z - mean) * weight_roots, computed in T; weight_roots
    // may be null.
    void center(const T* z, Size stride, Size n_rows, const double* mean,
                const double* weight_roots, Size first);
    // The same, computed in double precision and then rounded.
    void center_and_round(const double* z, Size stride, Size n_rows, const double* mean,
                          const double* weight_roots, Size first);
    // Copies one row without centering it.
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

// A tile of a matrix: a square on its diagonal, or a rectangle below it.
struct Tile {
    Size row, column, n_rows, n_columns;
};

// Products of buffered rows with the same number of columns, and the scratch memory for them.
template <class T> class RowProducts {
  public:
    RowProducts(const BufferedRows<T>& rows, Size n_rows, Size n_targets);

    // Adds scale * A'A to a symmetric matrix in LAPACK's rectangular full packed format
    // (TRANSR = 'N', UPLO = 'L'), where A are the first n_rows rows, and scale * A'B to the matrix
    // `cross`, stored by rows, where B are the first n_rows rows of `targets` unless it is null.
    // A packed matrix of floats is added to in double precision, and the sum is rounded once.
    template <class S> void add(const BufferedRows<T>& rows, const BufferedRows<T>* targets,
                                Size n_rows, double scale, const Blas& blas, S* packed,
                                double* cross) const;

  private:
    Size width_, n_targets_;
    std::vector<Tile> tiles_;
    ThreadScratch<T> scratch_;

    Size tasks() const;
};

}  // namespace kitchenette
