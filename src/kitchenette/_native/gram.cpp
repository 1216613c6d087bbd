#include "gram.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "threads.hpp"

namespace kitchenette {

template <class T> double add_column_sums(const T* z, Size stride, Size n_rows, Size n_columns,
                                          const double* weights, double* sums) {
    constexpr Size width = 512;  // columns of a task: their sums stay in the cache
    const Size tasks = (n_columns + width - 1) / width;
    std::atomic<double> largest{0};
    parallel<T>(tasks, n_rows * n_columns, 0, [&](Size task, T*) {
        const Size begin = task * width, count = std::min(width, n_columns - begin);
        double* sum = sums + begin;
        T peak[width] = {};
        const auto add = [&](Size i, auto rows) {  // so many rows at a time, still in order
            const T* first = z + i * stride + begin;
            double weight[4];
            for (int r = 0; r < rows; ++r) weight[r] = weights ? weights[i + r] : 1.0;
            for (Size j = 0; j < count; ++j) {
                double total = sum[j];
                T most = peak[j];
                for (int r = 0; r < rows; ++r) {
                    const T value = first[r * stride + j], magnitude = std::abs(value);
                    total += weight[r] * static_cast<double>(value);
                    most = most < magnitude ? magnitude : most;
                }
                sum[j] = total;
                peak[j] = most;
            }
        };
        Size i = 0;
        for (; i + 4 <= n_rows; i += 4) add(i, std::integral_constant<int, 4>{});
        for (; i < n_rows; ++i) add(i, std::integral_constant<int, 1>{});
        const double mine = static_cast<double>(*std::max_element(peak, peak + width));
        double seen = largest.load();
        while (seen < mine && !largest.compare_exchange_weak(seen, mine)) {
        }
    });
    return largest;
}

template <class T> void centre_rows(const T* z, Size stride, Size n_rows, Size n_columns,
                                    const double* mean, const double* roots, T* out,
                                    Size out_stride) {
    // The mean as a sum of two numbers of this precision: the first difference is exact if
    // the mean is large, so that the second can take the rest away.
    const AlignedBuffer<T> parts(2 * n_columns);
    T *high = parts.data(), *low = high + n_columns;
    for (Size j = 0; j < n_columns; ++j) {
        high[j] = static_cast<T>(mean[j]);
        low[j] = static_cast<T>(mean[j] - static_cast<double>(high[j]));
    }
    const Size rows = 16;  // of a task
    parallel<T>((n_rows + rows - 1) / rows, n_rows * n_columns, 0, [&](Size task, T*) {
        for (Size i = task * rows; i < std::min(n_rows, (task + 1) * rows); ++i) {
            const T* source = z + i * stride;
            T* target = out + i * out_stride;
            const T root = roots ? static_cast<T>(roots[i]) : T{1};
            for (Size j = 0; j < n_columns; ++j) target[j] = (source[j] - high[j] - low[j]) * root;
        }
    });
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

// As wide as the BLAS likes it and as the threads, each with a rectangle at least, allow.
Size tile_width(Size order) {
    Size width = 1024;
    const auto rectangles = [&] {
        const Size side = (order + width - 1) / width;
        return side * side / 2;
    };
    while (width > 128 && rectangles() < max_threads()) width /= 2;
    return width;
}

// Adds the part of a tile, stored by columns, on and below the diagonal to the packed matrix. Its
// first `half` columns lie in a rectangle from the diagonal down, one number lower if the
// order is even; the rest lies transposed in the upper corner of that rectangle.
template <class T>
void add_to_packed(const T* values, const Tile& tile, Size order, double* packed) {
    const Size half = (order + 1) / 2, even = 1 - order % 2, height = order + even;
    const Size straight = std::clamp(half - tile.column, Size{0}, tile.n_columns);
    for (Size j = 0; j < straight; ++j) {
        const Size column = tile.column + j;
        const T* source = values + j * tile.n_rows;
        double* target = packed + column * height + even + tile.row;
        for (Size i = std::max(Size{0}, column - tile.row); i < tile.n_rows; ++i)
            target[i] += static_cast<double>(source[i]);
    }
    constexpr Size width = 16;  // columns at a time: whole cache lines of both
    for (Size begin = straight; begin < tile.n_columns; begin += width) {
        for (Size i = std::max(Size{0}, tile.column + begin - tile.row); i < tile.n_rows; ++i) {
            const Size row = tile.row + i;
            const Size place = (row - half + 1 - even) * height + tile.column - half;
            const Size end = std::min({tile.n_columns, begin + width, row - tile.column + 1});
            for (Size j = begin; j < end; ++j)
                packed[place + j] += static_cast<double>(values[j * tile.n_rows + i]);
        }
    }
}

}  // namespace

template <class T> void add_products(const T* rows, Size stride, Size n_rows, Size order,
                                     const T* targets, Size n_targets, T scale, const Blas<T>& blas,
                                     double* packed, double* cross) {
    const Size width = tile_width(order);
    const std::vector<Tile> tiles = tiles_of(order, width);
    const Size squares = static_cast<Size>(tiles.size());
    const Size panels = n_targets > 0 ? (order + width - 1) / width : 0;
    const Size most_targets = std::min(n_targets, width);
    parallel<T>(
        squares + panels, n_rows * order * order, width * width, [&](Size task, T* product) {
            // The BLAS sees the columns of a matrix in the rows, and takes pointers to everything.
            T factor = scale, nothing = 0;
            int k = static_cast<int>(n_rows), ld = static_cast<int>(stride);
            char lower = 'L', plain = 'N', transposed = 'T';
            if (task < squares) {
                const Tile& tile = tiles[static_cast<std::size_t>(task)];
                T *left = const_cast<T*>(rows) + tile.row,
                  *right = const_cast<T*>(rows) + tile.column;
                int m = static_cast<int>(tile.n_rows), n = static_cast<int>(tile.n_columns);
                if (tile.row == tile.column)
                    blas.syrk(&lower, &plain, &n, &k, &factor, left, &ld, &nothing, product, &m);
                else
                    blas.gemm(&plain, &transposed, &m, &n, &k, &factor, left, &ld, right, &ld,
                              &nothing, product, &m);
                add_to_packed(product, tile, order, packed);
                return;
            }
            const Size first = (task - squares) * width, count = std::min(width, order - first);
            for (Size t = 0; t < n_targets; t += most_targets) {
                const Size some = std::min(most_targets, n_targets - t);
                // By columns of the product: as many numbers as targets for every feature.
                int m = static_cast<int>(some), n = static_cast<int>(count);
                int ld_targets = static_cast<int>(n_targets);
                T *left = const_cast<T*>(targets) + t, *right = const_cast<T*>(rows) + first;
                blas.gemm(&plain, &transposed, &m, &n, &k, &factor, left, &ld_targets, right, &ld,
                          &nothing, product, &m);
                for (Size j = 0; j < count; ++j)
                    for (Size i = 0; i < some; ++i)
                        cross[(first + j) * n_targets + t + i] +=
                            static_cast<double>(product[j * some + i]);
            }
        });
}

#define KITCHENETTE_INSTANTIATE(T)                                                               \
    template double add_column_sums<T>(const T*, Size, Size, Size, const double*, double*);      \
    template void centre_rows<T>(const T*, Size, Size, Size, const double*, const double*, T*,   \
                                 Size);                                                          \
    template void add_products<T>(const T*, Size, Size, Size, const T*, Size, T, const Blas<T>&, \
                                  double*, double*);
KITCHENETTE_INSTANTIATE(float)
KITCHENETTE_INSTANTIATE(double)

}  // namespace kitchenette
