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
    parallel<T>(tasks, n_rows * n_columns, 0, [&](Size task, T*) {
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
constexpr Size strip_bytes = 9216;  // of a strip in a chunk: three of them fit into the first cache
constexpr Size deepest_chunk = 96;  // that follows from these, and a multiple of all others
constexpr Size rows_of_a_task = 8;
constexpr Size largest_in_caches = Size{1} << 25;   // bytes of rows that wait
constexpr Size rows_of_a_sum = 22 * deepest_chunk;  // in the precision of the features
constexpr Size tile_of_strips = 384;  // columns: a multiple of all widths, and so are its halves
constexpr Size tile_of_blas = 1024;

// Rows as a product wants them: cut into chunks of `depth` rows, these into strips of `width`
// columns, and a strip stored row by row. The last strip is filled up with zeros.
struct Layout {
    Size n_columns, width, depth;

    Size strips() const { return (n_columns + width - 1) / width; }
    Size columns_of(Size strip) const { return std::min(width, n_columns - strip * width); }
    Size begin(Size chunk, Size strip) const { return (chunk * strips() + strip) * depth * width; }
};

// One strip and one chunk are rows as the BLAS knows them.
template <class T> Layout layout_of(Size capacity, Size n_columns) {
    const VectorCode<T>& code = vector_code<T>();
    if (!code.multiply_strips) return {n_columns, n_columns, capacity};
    const Size width = code.strip_width;
    return {n_columns, width, strip_bytes / (width * static_cast<Size>(sizeof(T)))};
}

template <class T> T* on_a_cache_line(T* memory) {
    return reinterpret_cast<T*>((reinterpret_cast<std::uintptr_t>(memory) + 63) / 64 * 64);
}

}  // namespace

Size waiting_size(Size capacity, Size n_columns) {
    const auto whole = [](Size count, Size unit) { return (count + unit - 1) / unit * unit; };
    constexpr Size alignment = 64 / sizeof(float);
    return whole(capacity, deepest_chunk) * whole(n_columns, widest_strip) + alignment;
}

template <class T> void centre_rows(const T* z, Size stride, Size n_rows, const double* mean,
                                    const double* roots, const double* last, Size first,
                                    const WaitingRows<T>& waiting) {
    const Size n_columns = waiting.n_columns;
    const VectorCode<T>& code = vector_code<T>();
    const Layout layout = layout_of<T>(waiting.capacity, n_columns);
    T* memory = on_a_cache_line(waiting.memory);
    const bool past_caches =
        code.multiply_strips && waiting.capacity * n_columns > largest_in_caches / Size{sizeof(T)};
    // The mean as a sum of two numbers of this precision: the first difference is exact if
    // the mean is large, so that the second can take the rest away.
    const AlignedBuffer<T> parts(2 * n_columns);
    T *high = parts.data(), *low = high + n_columns;
    for (Size j = 0; j < n_columns; ++j) {
        high[j] = static_cast<T>(mean[j]);
        low[j] = static_cast<T>(mean[j] - static_cast<double>(high[j]));
    }
    const Size distance = layout.begin(0, 1);
    const auto place = [&](Size row) {  // of its first number
        return memory + layout.begin(row / layout.depth, 0) + row % layout.depth * layout.width;
    };
    const Size end = first + n_rows, first_task = first / rows_of_a_task;
    const Size last_task = (end + rows_of_a_task - 1) / rows_of_a_task;
    parallel<T>(last_task - first_task, n_rows * n_columns, 0, [&](Size task, T*) {
        const Size row = std::max(first, (first_task + task) * rows_of_a_task);
        const Size count = std::min(end, (first_task + task + 1) * rows_of_a_task) - row;
        code.centre_rows(z + (row - first) * stride, stride, count, n_columns, high, low,
                         roots ? roots + (row - first) : nullptr, place(row), layout.width,
                         distance, past_caches);
    });
    for (Size j = 0; last && j < layout.strips() * layout.width; ++j)
        place(end)[j / layout.width * distance + j % layout.width] =
            j < n_columns ? static_cast<T>(last[j]) : T{0};
}

namespace {

// Part of a matrix: a square on its diagonal, or a rectangle below it.
struct Tile {
    Size row, column, n_rows, n_columns;
};

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

// As wide as the product likes it and as the threads, each with some rectangles, allow.
Size tile_width(Size order, Size width, Size least, Size per_thread) {
    const auto rectangles = [&] {
        const Size side = (order + width - 1) / width;
        return side * side / 2;
    };
    while (width > least && rectangles() < per_thread * max_threads()) width /= 2;
    return width;
}

// Asks for cache lines that are written soon; any address will do. A tile's columns are too short
// and too far apart for the processor to guess the next one.
void prefetch(const double* numbers, Size count) {
#if defined(__GNUC__)
    for (Size i = 0; i < count; i += 8) __builtin_prefetch(numbers + i, 1);
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
template <class T> void add_to_packed(const Sums<T>& sums, Size stride, const Tile& tile,
                                      Size order, double scale, double* packed) {
    const Size half = (order + 1) / 2, even = 1 - order % 2, height = order + even;
    const Size straight = std::clamp(half - tile.column, Size{0}, tile.n_columns);
    for (Size j = 0; j < straight; ++j) {
        const Size column = tile.column + j;
        double* target = packed + column * height + even + tile.row;
        prefetch(target + height, tile.n_rows);
        for (Size i = std::max(Size{0}, column - tile.row); i < tile.n_rows; ++i)
            target[i] += scale * sums[j * stride + i];
    }
    constexpr Size width = 16;  // columns at a time: whole cache lines of both
    for (Size begin = straight; begin < tile.n_columns; begin += width) {
        for (Size i = std::max(Size{0}, tile.column + begin - tile.row); i < tile.n_rows; ++i) {
            const Size row = tile.row + i;
            const Size place = (row - half + 1 - even) * height + tile.column - half;
            const Size end = std::min({tile.n_columns, begin + width, row - tile.column + 1});
            prefetch(packed + place + begin + 8 * height, width);
            for (Size j = begin; j < end; ++j) packed[place + j] += scale * sums[j * stride + i];
        }
    }
}

// Rows in some layout.
template <class T> struct Factor {
    T* data;
    Layout layout;
};

struct Range {
    Size begin, end;
};

// product(i, j), stored by columns, is the sum over some rows, which begin with a chunk, of
// left(row, tile.row + i) right(row, tile.column + j). In a square on the diagonal of a Gram
// matrix, only what is on and below the diagonal is asked for.
template <class T> void multiply(const Factor<T>& left, const Factor<T>& right, const Range& rows,
                                 const Tile& tile, bool square, T* product, Size stride) {
    const VectorCode<T>& code = vector_code<T>();
    const Size width = left.layout.width, depth = left.layout.depth;
    const Size first_left = tile.row / width, first_right = tile.column / width;
    const Size last_left = (tile.row + tile.n_rows + width - 1) / width;
    const Size last_right = (tile.column + tile.n_columns + width - 1) / width;
    for (Size row = rows.begin; row < rows.end; row += depth) {
        const Size chunk = row / depth, n_rows = std::min(depth, rows.end - row);
        for (Size j = first_right; j < last_right; ++j) {
            T* columns = product + (j - first_right) * width * stride;
            // In this chunk, or in the one after it.
            const T* next_right =
                right.data + (j + 1 < last_right ? right.layout.begin(chunk, j + 1)
                                                 : right.layout.begin(chunk + 1, first_right));
            for (Size i = square ? j : first_left; i < last_left; ++i) {
                const T* strip = left.data + left.layout.begin(chunk, i);
                code.multiply_strips(strip, right.data + right.layout.begin(chunk, j), n_rows,
                                     right.layout.columns_of(j), columns + (i - first_left) * width,
                                     stride, row > rows.begin,
                                     i + 1 < last_left ? strip + depth * width : next_right);
            }
        }
    }
}

// The same by the BLAS, which sees columns in the rows and takes pointers to everything.
template <class T> void multiply(const Blas<T>& blas, const Factor<T>& left, const Factor<T>& right,
                                 const Range& rows, const Tile& tile, bool square, T* product,
                                 Size stride) {
    const Size left_columns = left.layout.n_columns, right_columns = right.layout.n_columns;
    T* a = left.data + rows.begin * left_columns + tile.row;
    T* b = right.data + rows.begin * right_columns + tile.column;
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

}  // namespace

bool products_call_blas() {
    return !vector_code<float>().multiply_strips;
}

template <class T> void add_products(const WaitingRows<T>& waiting, Size n_rows, const T* targets,
                                     Size n_targets, double scale, const Blas<T>& blas,
                                     double* packed, double* cross) {
    const Size order = waiting.n_columns;
    const Factor<T> features{on_a_cache_line(waiting.memory),
                             layout_of<T>(waiting.capacity, order)};
    const AlignedBuffer<T> target_memory(waiting_size(n_rows, n_targets));
    const Factor<T> beside{target_memory.data(), layout_of<T>(n_rows, n_targets)};
    if (n_targets > 0) {
        const std::vector<double> zeros(static_cast<std::size_t>(n_targets));
        centre_rows<T>(targets, n_targets, n_rows, zeros.data(), nullptr, nullptr, 0,
                       {target_memory.data(), n_rows, n_targets});
    }
    const bool by_blas = products_call_blas();
    const Size width = by_blas ? tile_width(order, tile_of_blas, 128, 1)
                               : tile_width(order, tile_of_strips, widest_strip, 8);
    const std::vector<Tile> tiles = tiles_of(order, width);
    const Size n_tiles = static_cast<Size>(tiles.size());
    const Size bands = n_targets > 0 ? (order + width - 1) / width : 0;
    const auto task = [&](Size number, T* products) {
        // Each time a tile of the matrix comes into the cache, two sums are added to it.
        const auto compute = [&](const Factor<T>& right, const Tile& tile, bool square,
                                 const auto& add) {
            T *first = products, *second = products + width * width;
            for (Size row = 0; row < n_rows; row += 2 * rows_of_a_sum) {
                const Size middle = std::min(n_rows, row + rows_of_a_sum);
                const Size end = std::min(n_rows, middle + rows_of_a_sum);
                const auto sum = [&](const Range& rows, T* product) {
                    if (by_blas)
                        multiply(blas, features, right, rows, tile, square, product, width);
                    else
                        multiply(features, right, rows, tile, square, product, width);
                };
                sum({row, middle}, first);
                if (middle < end) sum({middle, end}, second);
                add(Sums<T>{first, middle < end ? second : nullptr});
            }
        };
        if (number < n_tiles) {
            const Tile& tile = tiles[static_cast<std::size_t>(number)];
            compute(features, tile, tile.row == tile.column, [&](const Sums<T>& sums) {
                add_to_packed(sums, width, tile, order, scale, packed);
            });
            return;
        }
        const Size first = (number - n_tiles) * width, count = std::min(width, order - first);
        for (Size t = 0; t < n_targets; t += width) {
            const Size some = std::min(width, n_targets - t);
            compute(beside, {first, t, count, some}, false, [&](const Sums<T>& sums) {
                for (Size i = 0; i < count; ++i)
                    for (Size j = 0; j < some; ++j)
                        cross[(first + i) * n_targets + t + j] += scale * sums[j * width + i];
            });
        }
    };
    parallel<T>(n_tiles + bands, n_rows * order * order, 2 * width * width, task, true);
}

#define KITCHENETTE_INSTANTIATE(T)                                                          \
    template double add_column_sums<T>(const T*, Size, Size, Size, const double*, double*); \
    template void centre_rows<T>(const T*, Size, Size, const double*, const double*,        \
                                 const double*, Size, const WaitingRows<T>&);               \
    template void add_products<T>(const WaitingRows<T>&, Size, const T*, Size, double,      \
                                  const Blas<T>&, double*, double*);
KITCHENETTE_INSTANTIATE(float)
KITCHENETTE_INSTANTIATE(double)

}  // namespace kitchenette
