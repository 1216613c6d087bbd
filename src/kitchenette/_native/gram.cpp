#include "gram.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "threads.hpp"

namespace kitchenette {

template <class T> double add_column_sums(const T* z, Size stride, Size n_rows, Size n_columns,
                                          const double* weights, double* sums) {
    const VectorCode<T>& code = vector_code<T>();
    const Size width = std::clamp(n_columns / (2 * max_threads()), Size{64}, most_sums);
    const Size tasks = (n_columns + width - 1) / width;
    std::atomic<double> largest{0};
    parallel<T>(tasks, n_rows * n_columns, Size{0}, [&](Size task, T*) {
        const Size begin = task * width, count = std::min(width, n_columns - begin);
        const double mine = static_cast<double>(
            code.add_sums(z + begin, stride, n_rows, count, weights, sums + begin));
        double seen = largest.load();
        while (seen < mine && !largest.compare_exchange_weak(seen, mine)) {
        }
    });
    return largest;
}

namespace {

constexpr Size widest_strip = 48;   // three vectors of 16 numbers
constexpr Size strip_bytes = 9216;  // of a strip in a chunk; three fit the first-level cache
constexpr Size deepest_chunk = 96;  // follows from these, and is a multiple of all other depths
constexpr Size rows_of_a_task = 8;
constexpr Size largest_in_caches = Size{1} << 25;   // bytes of buffered rows
constexpr Size rows_of_a_sum = 22 * deepest_chunk;  // rows summed in the precision of the features
constexpr Size tile_of_strips = 384;  // columns: a multiple of all widths, and so are its halves
constexpr Size tile_of_blas = 1024;

template <class T> Layout layout_of(const VectorCode<T>& code, Size capacity, Size n_columns) {
    if (!code.multiply_strips) return {n_columns, n_columns, capacity};
    const Size width = code.strip_width;
    return {n_columns, width, strip_bytes / (width * static_cast<Size>(sizeof(T)))};
}

// Calls body(row, count) for groups of rows from `first` on. A task begins at a multiple of its
// number of rows, so that no chunk ends within a task.
template <class T, class Body>
void for_rows(Size n_rows, Size n_columns, Size first, const Body& body) {
    const Size end = first + n_rows, first_task = first / rows_of_a_task;
    const Size last_task = (end + rows_of_a_task - 1) / rows_of_a_task;
    parallel<T>(last_task - first_task, n_rows * n_columns, Size{0}, [&](Size task, T*) {
        const Size row = std::max(first, (first_task + task) * rows_of_a_task);
        body(row, std::min(end, (first_task + task + 1) * rows_of_a_task) - row);
    });
}

// Calls body(column, place) for all columns of a row, and writes zeros after the last one.
template <class T, class Body> void for_columns(const Layout& layout, const Body& body, T* row) {
    const Size width = layout.width, distance = layout.begin(0, 1);
    for (Size strip = 0; strip < layout.strips(); ++strip) {
        const Size count = layout.columns_of(strip), begin = strip * distance;
        for (Size j = 0; j < count; ++j) body(strip * width + j, begin + j);
        for (Size j = count; j < width; ++j) row[begin + j] = 0;
    }
}

Size numbers_of(const Layout& layout, Size capacity) {
    const Size chunks = (capacity + layout.depth - 1) / layout.depth;
    return layout.begin(chunks, 0);
}

}  // namespace

template <class T> BufferedRows<T>::BufferedRows(Size capacity, Size n_columns)
    : code_(&vector_code<T>()),
      layout_(layout_of(*code_, capacity, n_columns)),
      past_caches_(code_->multiply_strips &&
                   capacity * n_columns > largest_in_caches / Size{sizeof(T)}),
      memory_(numbers_of(layout_, capacity)),
      mean_parts_(2 * n_columns) {}

template <class T> void BufferedRows<T>::center(const T* z, Size stride, Size n_rows,
                                                const double* mean, const double* weight_roots,
                                                Size first) {
    const Size n_columns = layout_.n_columns;
    // The mean is split into a sum of two numbers of this precision. If the mean is large, the
    // first difference is exact, and the second one subtracts the remainder.
    T *high = mean_parts_.data(), *low = high + n_columns;
    for (Size j = 0; j < n_columns; ++j) {
        high[j] = static_cast<T>(mean[j]);
        low[j] = static_cast<T>(mean[j] - static_cast<double>(high[j]));
    }
    for_rows<T>(n_rows, n_columns, first, [&](Size row, Size count) {
        code_->center_rows(z + (row - first) * stride, stride, count, n_columns, high, low,
                           weight_roots ? weight_roots + (row - first) : nullptr, place_of(row),
                           layout_.width, layout_.begin(0, 1), past_caches_);
    });
}

template <class T> void BufferedRows<T>::center_and_round(const double* z, Size stride, Size n_rows,
                                                          const double* mean,
                                                          const double* weight_roots, Size first) {
    for_rows<T>(n_rows, layout_.n_columns, first, [&](Size begin, Size count) {
        for (Size row = begin; row < begin + count; ++row) {
            const double* source = z + (row - first) * stride;
            const double root = weight_roots ? weight_roots[row - first] : 1.0;
            T* target = place_of(row);
            for_columns(
                layout_,
                [&](Size column, Size place) {
                    target[place] = static_cast<T>((source[column] - mean[column]) * root);
                },
                target);
        }
    });
}

template <class T> void BufferedRows<T>::put(const double* row, Size place) {
    T* target = place_of(place);
    for_columns(
        layout_, [&](Size column, Size j) { target[j] = static_cast<T>(row[column]); }, target);
}

namespace {

// A triangle as tiles, the rectangles first: they take longer.
std::vector<Tile> tiles_of(Size order, Size width) {
    std::vector<Tile> tiles;
    for (Size row = 0; row < order; row += width)
        for (Size column = 0; column < row; column += width)
            tiles.push_back({row, column, std::min(width, order - row), width});
    for (Size start = 0; start < order; start += width) {
        const Size size = std::min(width, order - start);
        tiles.push_back({start, start, size, size});
    }
    return tiles;
}

// The best width of tiles for the product, limited so that each thread gets several rectangles.
Size tile_width(Size order, Size width, Size least, Size per_thread) {
    const auto rectangles = [&] {
        const Size side = (order + width - 1) / width;
        return side * side / 2;
    };
    while (width > least && rectangles() < per_thread * max_threads()) width /= 2;
    return width;
}

template <class S> constexpr Size cache_line = 64 / Size{sizeof(S)};  // in numbers

// Prefetches cache lines for writing; the address need not be valid. The columns of a tile are too
// short and too far apart for hardware prefetching.
template <class S> void prefetch(const S* numbers, Size count) {
#if defined(__GNUC__)
    for (Size i = 0; i < count; i += cache_line<S>) __builtin_prefetch(numbers + i, 1);
#else
    (void)numbers, (void)count;
#endif
}

// One sum over some rows, or two over more of them, which are added in double precision.
template <class T> struct Sums {
    const T *first, *second;  // the second may be null

    double operator[](Size i) const {
        return static_cast<double>(first[i]) + (second ? static_cast<double>(second[i]) : 0.0);
    }
};

// Adds the part of a tile, stored by columns, on and below the diagonal to the packed matrix. Its
// first `half` columns lie in a rectangle from the diagonal down, one number lower if the
// order is even; the rest lies transposed in the upper corner of that rectangle.
template <class T, class S> void add_to_packed(const Sums<T>& sums, Size stride, const Tile& tile,
                                               Size order, double scale, S* packed) {
    const Size half = (order + 1) / 2, even = 1 - order % 2, height = order + even;
    const Size straight = std::clamp(half - tile.column, Size{0}, tile.n_columns);
    for (Size j = 0; j < straight; ++j) {
        const Size column = tile.column + j;
        S* target = packed + column * height + even + tile.row;
        prefetch(target + height, tile.n_rows);
        for (Size i = std::max(Size{0}, column - tile.row); i < tile.n_rows; ++i)
            target[i] = static_cast<S>(target[i] + scale * sums[j * stride + i]);
    }
    constexpr Size width = 16;  // columns at a time: whole cache lines of both
    for (Size begin = straight; begin < tile.n_columns; begin += width) {
        for (Size i = std::max(Size{0}, tile.column + begin - tile.row); i < tile.n_rows; ++i) {
            const Size row = tile.row + i;
            const Size place = (row - half + 1 - even) * height + tile.column - half;
            const Size end = std::min({tile.n_columns, begin + width, row - tile.column + 1});
            prefetch(packed + place + begin + 8 * height, width);
            for (Size j = begin; j < end; ++j)
                packed[place + j] =
                    static_cast<S>(packed[place + j] + scale * sums[j * stride + i]);
        }
    }
}

struct Range {
    Size begin, end;
};

// product(i, j), stored by columns, is the sum over some rows, which begin with a chunk, of
// left(row, tile.row + i) right(row, tile.column + j). In a square on the diagonal of a Gram
// matrix, only what is on and below the diagonal is asked for.
template <class T> void multiply(const BufferedRows<T>& left, const BufferedRows<T>& right,
                                 const Range& rows, const Tile& tile, bool square, T* product,
                                 Size stride) {
    const VectorCode<T>& code = left.code();
    const Size width = left.layout().width, depth = left.layout().depth;
    const Size first_left = tile.row / width, first_right = tile.column / width;
    const Size last_left = (tile.row + tile.n_rows + width - 1) / width;
    const Size last_right = (tile.column + tile.n_columns + width - 1) / width;
    for (Size row = rows.begin; row < rows.end; row += depth) {
        const Size chunk = row / depth, n_rows = std::min(depth, rows.end - row);
        for (Size j = first_right; j < last_right; ++j) {
            T* columns = product + (j - first_right) * width * stride;
            // In this chunk, or in the one after it.
            const T* next_right =
                right.data() + (j + 1 < last_right ? right.layout().begin(chunk, j + 1)
                                                   : right.layout().begin(chunk + 1, first_right));
            for (Size i = square ? j : first_left; i < last_left; ++i) {
                const T* strip = left.data() + left.layout().begin(chunk, i);
                code.multiply_strips(strip, right.data() + right.layout().begin(chunk, j), n_rows,
                                     right.layout().columns_of(j),
                                     columns + (i - first_left) * width, stride, row > rows.begin,
                                     i + 1 < last_left ? strip + depth * width : next_right);
            }
        }
    }
}

// The same by the BLAS, which sees columns in the rows and takes pointers to everything.
template <class T> void multiply(const BlasFunctions<T>& blas, const BufferedRows<T>& left,
                                 const BufferedRows<T>& right, const Range& rows, const Tile& tile,
                                 bool square, T* product, Size stride) {
    const Size left_columns = left.layout().n_columns, right_columns = right.layout().n_columns;
    T* a = left.data() + rows.begin * left_columns + tile.row;
    T* b = right.data() + rows.begin * right_columns + tile.column;
    T one = 1, nothing = 0;
    int m = static_cast<int>(tile.n_rows), n = static_cast<int>(tile.n_columns);
    int k = static_cast<int>(rows.end - rows.begin), ld_a = static_cast<int>(left_columns);
    int ld_b = static_cast<int>(right_columns), ld = static_cast<int>(stride);
    char lower = 'L', plain = 'N', transposed = 'T';
    if (square)
        blas.syrk(&lower, &plain, &n, &k, &one, a, &ld_a, &nothing, product, &ld);
    else
        blas.gemm(&plain, &transposed, &m, &n, &k, &one, a, &ld_a, b, &ld_b, &nothing, product,
                  &ld);
}

// Whether a product of these rows is one of strips, which is our own, or one of the BLAS.
template <class T> bool in_strips(const BufferedRows<T>& rows) {
    return rows.code().multiply_strips != nullptr;
}

template <class T> Size width_of_tiles(const BufferedRows<T>& rows) {
    const Size order = rows.layout().n_columns;
    return in_strips(rows) ? tile_width(order, tile_of_strips, widest_strip, 8)
                           : tile_width(order, tile_of_blas, 128, 1);
}

}  // namespace

bool products_call_blas() {
    return !vector_code<float>().multiply_strips;
}

template <class T>
RowProducts<T>::RowProducts(const BufferedRows<T>& rows, Size n_rows, Size n_targets)
    : width_(width_of_tiles(rows)),
      n_targets_(n_targets),
      tiles_(tiles_of(rows.layout().n_columns, width_)),
      scratch_(threads_for(tasks(), n_rows * rows.layout().n_columns * rows.layout().n_columns),
               2 * width_ * width_) {}

// Tiles of the Gram matrix, and then bands of rows of the other one, each as high as a tile. The
// last tile is the last one on the diagonal.
template <class T> Size RowProducts<T>::tasks() const {
    const Tile& last = tiles_.back();
    const Size bands = n_targets_ > 0 ? last.row / width_ + 1 : 0;
    return static_cast<Size>(tiles_.size()) + bands;
}

template <class T> template <class S>
void RowProducts<T>::add(const BufferedRows<T>& rows, const BufferedRows<T>* targets, Size n_rows,
                         double scale, const Blas& blas, S* packed, double* cross) const {
    const Size order = rows.layout().n_columns, width = width_;
    const Size n_tiles = static_cast<Size>(tiles_.size());
    const auto task = [&](Size number, T* products) {
        // Two sums are added each time a tile of the matrix is loaded into the cache.
        const auto compute = [&](const BufferedRows<T>& right, const Tile& tile, bool square,
                                 const auto& add) {
            T *first = products, *second = products + width * width;
            for (Size row = 0; row < n_rows; row += 2 * rows_of_a_sum) {
                const Size middle = std::min(n_rows, row + rows_of_a_sum);
                const Size end = std::min(n_rows, middle + rows_of_a_sum);
                const auto sum = [&](const Range& range, T* product) {
                    if (in_strips(rows))
                        multiply(rows, right, range, tile, square, product, width);
                    else
                        multiply(blas.of<T>(), rows, right, range, tile, square, product, width);
                };
                sum({row, middle}, first);
                if (middle < end) sum({middle, end}, second);
                add(Sums<T>{first, middle < end ? second : nullptr});
            }
        };
        if (number < n_tiles) {
            const Tile& tile = tiles_[static_cast<std::size_t>(number)];
            compute(rows, tile, tile.row == tile.column, [&](const Sums<T>& sums) {
                add_to_packed(sums, width, tile, order, scale, packed);
            });
            return;
        }
        const Size first = (number - n_tiles) * width, count = std::min(width, order - first);
        for (Size t = 0; t < n_targets_; t += width) {
            const Size some = std::min(width, n_targets_ - t);
            compute(*targets, {first, t, count, some}, false, [&](const Sums<T>& sums) {
                for (Size i = 0; i < count; ++i)
                    for (Size j = 0; j < some; ++j)
                        cross[(first + i) * n_targets_ + t + j] += scale * sums[j * width + i];
            });
        }
    };
    parallel<T>(tasks(), n_rows * order * order, scratch_, task, true);
}

#define KITCHENETTE_INSTANTIATE_ADD(T, S)                                                      \
    template void RowProducts<T>::add<S>(const BufferedRows<T>&, const BufferedRows<T>*, Size, \
                                         double, const Blas&, S*, double*) const;
#define KITCHENETTE_INSTANTIATE(T)                                                          \
    template double add_column_sums<T>(const T*, Size, Size, Size, const double*, double*); \
    template class BufferedRows<T>;                                                         \
    template class RowProducts<T>;                                                          \
    KITCHENETTE_INSTANTIATE_ADD(T, float)                                                   \
    KITCHENETTE_INSTANTIATE_ADD(T, double)
KITCHENETTE_INSTANTIATE(float)
KITCHENETTE_INSTANTIATE(double)

}  // namespace kitchenette
