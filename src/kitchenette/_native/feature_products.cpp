#include "feature_products.hpp"

#include <atomic>
#include <limits>

#include "blocks.hpp"
#include "threads.hpp"

namespace kitchenette {
namespace {

// The number of rows whose products with features are added in T, before their sum is added in
// double precision to one number per feature and target. With many targets these numbers exceed
// the caches, so that they are added to less often.
Size rows_of_group(Size n_targets) {
    return n_targets <= 32 ? 64 : 128;
}

// The number of rows in a block of features, which fit the threads' caches if possible: a multiple
// of the group, so that results do not depend on it, but fewer if a group is wider than any cache.
template <class T> Size rows_of_block(Size n_rows, Size stride, Size n_targets) {
    constexpr Size cache_bytes = Size{1} << 20;
    const Size group = rows_of_group(n_targets), row_bytes = stride * static_cast<Size>(sizeof(T));
    if (64 * row_bytes > 2 * wide_bytes) return std::min(n_rows, Size{32});
    const Size bytes = std::min(wide_bytes, cache_bytes * max_threads());
    return std::min(n_rows, std::max(Size{1}, bytes / row_bytes / group) * group);
}

// out += z' factors with all threads, for the features z of a block.
template <class T> void add_transposed_block(const VectorCode<T>& code, const T* z, Size stride,
                                             Size n_rows, Size n_features, const T* factors,
                                             Size n_targets, double* out) {
    constexpr Size columns = 512;  // features that a thread multiplies at a time
    const Size group = rows_of_group(n_targets);
    parallel<T>(ceil_divide(n_features, columns), n_rows * n_features * n_targets / 8, 0,
                [&](Size task, T*) {
                    const Size first = task * columns;
                    const Size width = std::min(columns, n_features - first);
                    for (Size r = 0; r < n_rows; r += group)
                        code.add_outer_products(
                            z + r * stride + first, stride, std::min(group, n_rows - r), width,
                            factors + r * n_targets, n_targets, out + first * n_targets);
                });
}

}  // namespace

// ---------------------------------------------------------------- weights

template <class T> template <class Weight>
PackedWeights<T>::PackedWeights(const Operator<T>& features, const Weight* weights, Size n_targets)
    : n_targets_(n_targets),
      chunks_(features, stretch),
      weights_(static_cast<std::size_t>(features.n_features() * n_targets)) {
    parallel<T>(chunks_.count(), features.n_features() * n_targets, 0, [&](Size chunk, T*) {
        const Size end = chunks_.first_feature(chunk + 1);
        for (Size begin = chunks_.first_feature(chunk); begin < end; begin += stretch) {
            T* packed = weights_.data() + begin * n_targets;
            const Size width = std::min(stretch, end - begin);
            constexpr Size tile = 64;  // features whose weights stay in the inner cache
            for (Size f = 0; f < width; f += tile)
                for (Size target = 0; target < n_targets; ++target)
                    for (Size g = f; g < std::min(width, f + tile); ++g)
                        packed[target * width + g] =
                            static_cast<T>(weights[(begin + g) * n_targets + target]);
        }
    });
}

template <class T> void PackedWeights<T>::add_products(const VectorCode<T>& code, Size chunk,
                                                       const T* z, Size z_stride, Size n_rows,
                                                       double* sums) const {
    const Size first = chunks_.first_feature(chunk), end = chunks_.first_feature(chunk + 1);
    for (Size begin = first; begin < end; begin += stretch)
        code.add_dot_products(z + (begin - first), z_stride, n_rows, std::min(stretch, end - begin),
                              weights_.data() + begin * n_targets_, n_targets_, sums);
}

template <class T> void PackedWeights<T>::multiply(const VectorCode<T>& code, const T* z,
                                                   Size z_stride, Size n_rows,
                                                   const double* intercept, double* out,
                                                   Size stride, double* sums) const {
    // A task is a chunk of some rows, so that its weights are read once for many rows.
    constexpr Size group = 64;
    const Size n_groups = ceil_divide(n_rows, group), n_sums = n_rows * n_targets_;
    const Size work = n_sums * chunks_.first_feature(chunks_.count()) / 16;
    parallel<T>(chunks_.count() * n_groups, work, 0, [&](Size task, T*) {
        const Size chunk = task / n_groups, row = task % n_groups * group;
        const Size count = std::min(group, n_rows - row);
        double* mine = sums + chunk * n_sums + row * n_targets_;
        std::fill(mine, mine + count * n_targets_, 0.0);
        add_products(code, chunk, z + row * z_stride + chunks_.first_feature(chunk), z_stride,
                     count, mine);
    });
    for (Size chunk = 1; chunk < chunks_.count(); ++chunk)
        for (Size i = 0; i < n_sums; ++i) sums[i] += sums[chunk * n_sums + i];
    for (Size r = 0; r < n_rows; ++r)
        for (Size c = 0; c < n_targets_; ++c)
            out[r * stride + c] = sums[r * n_targets_ + c] + intercept[c];
}

// ---------------------------------------------------------------- features times weights

template <class T> template <class Weight>
Linear<T>::Linear(SharedOperator<T> features, const Weight* weights, const double* intercept,
                  Size n_targets)
    : features_(std::move(features)),
      weights_(*features_, weights, n_targets),
      intercept_(intercept, intercept + n_targets) {}

// Rows that one thread computes at a time: their features of a chunk stay in the cache.
template <class T> Pace Linear<T>::unit_pace(const VectorCode<T>& code) const {
    Pace pace = features_->pace(code);
    if (pace.rows <= code.lanes) return pace;
    const Size bytes = weights_.chunks().widest() * static_cast<Size>(sizeof(T));
    const Size least = std::min(pace.rows, Size{16});
    pace.rows = std::clamp((Size{1} << 18) / bytes, least, pace.rows);
    return pace;
}

template <class T> bool Linear<T>::run(const Rows<T>& rows, double* out, Size stride) const {
    const VectorCode<T>& code = vector_code<T>();
    const Pace pace = unit_pace(code);
    const bool many = Units(rows.n_rows, pace).count() >= 2 * max_threads();
    const bool fine = many && features_->resumes() && has_resident_weights()
                          ? run_by_units(code, rows, pace, out, stride)
                          : run_by_blocks(code, rows, out, stride);
    bool finite = true;
    for (Size r = 0; r < rows.n_rows; ++r) finite &= are_finite(out + r * stride, n_targets());
    return fine && finite;
}

// True if the weights stay in a thread's cache while it computes unit after unit.
template <class T> bool Linear<T>::has_resident_weights() const {
    const Size count = features_->n_features() * n_targets();
    return count * static_cast<Size>(sizeof(T)) <= (Size{1} << 20);
}

template <class T> bool Linear<T>::run_by_units(const VectorCode<T>& code, const Rows<T>& rows,
                                                const Pace& pace, double* out, Size stride) const {
    const Units units(rows.n_rows, pace);
    const Size z_stride = padded_stride(weights_.chunks().widest());
    const Size sums_size = padded_stride(pace.rows * n_targets());  // of doubles
    const Size doubles = 2 * sums_size * static_cast<Size>(sizeof(double) / sizeof(T));
    const Size z_size = pace.rows * z_stride;
    std::atomic<bool> fine{true};
    parallel<T>(units.count(),
                rows.n_rows * (features_->work() + features_->n_features() * n_targets() / 8),
                doubles + z_size + features_->scratch_size(code, pace.rows, rows.sparse()),
                [&](Size unit, T* memory) {
                    const Size row = units.first_row(unit), count = units.rows(unit);
                    const Size n_sums = count * n_targets();
                    double* totals = reinterpret_cast<double*>(memory);
                    double* sums = totals + sums_size;
                    T* z = memory + doubles;
                    std::fill(totals, totals + n_sums, 0.0);
                    for (Size chunk = 0; chunk < weights_.chunks().count(); ++chunk) {
                        Output<T> window = output_to(z, z_stride, features_->n_features());
                        window.first_row = row;
                        window.first_column = weights_.chunks().first_feature(chunk);
                        const Piece piece{row, count, weights_.chunks().first_part(chunk),
                                          weights_.chunks().first_part(chunk + 1), chunk > 0};
                        if (!features_->write(code, rows, piece, window, z + z_size))
                            fine.store(false, std::memory_order_relaxed);
                        std::fill(sums, sums + n_sums, 0.0);
                        weights_.add_products(code, chunk, z, z_stride, count, sums);
                        for (Size i = 0; i < n_sums; ++i) totals[i] += sums[i];
                    }
                    for (Size r = 0; r < count; ++r)
                        for (Size c = 0; c < n_targets(); ++c)
                            out[(row + r) * stride + c] = totals[r * n_targets() + c] +
                                                          intercept_[static_cast<std::size_t>(c)];
                });
    return fine;
}

// The threads share the features of a block of rows, and then the products with these.
template <class T> bool Linear<T>::run_by_blocks(const VectorCode<T>& code, const Rows<T>& rows,
                                                 double* out, Size stride) const {
    const Size n_features = features_->n_features(), z_stride = padded_stride(n_features);
    const Size block = rows_of_block<T>(rows.n_rows, z_stride, n_targets());
    const AlignedBuffer<T> z(block * z_stride);
    const AlignedBuffer<double> sums(weights_.chunks().count() * block * n_targets());
    bool fine = true;
    for (Size row = 0; row < rows.n_rows; row += block) {
        const Size count = std::min(block, rows.n_rows - row);
        fine &= features_->run(code, some_rows(rows, row, count),
                               output_to(z.data(), z_stride, n_features));
        weights_.multiply(code, z.data(), z_stride, count, intercept_.data(), out + row * stride,
                          stride, sums.data());
    }
    return fine;
}

// ---------------------------------------------------------------- transposed products

namespace {

constexpr Size chunk_bytes = Size{1} << 19;  // of features, beside their sums in a thread's cache

// A thread takes a chunk of the features, group after group of all rows, so that the sums of the
// chunk stay in its cache.
template <class T> bool add_transposed_by_chunks(const Operator<T>& features, const Chunks& chunks,
                                                 const Rows<T>& rows, const T* factors,
                                                 Size n_targets, double* out) {
    const VectorCode<T>& code = vector_code<T>();
    const Size group = rows_of_group(n_targets), stride = padded_stride(chunks.widest());
    const Size z_size = group * stride;
    std::atomic<bool> fine{true};
    parallel<T>(
        chunks.count(), rows.n_rows * (features.work() + features.n_features() * n_targets / 8),
        z_size + features.scratch_size(code, group, rows.sparse()),
        [&](Size chunk, T* z) {
            const Size first = chunks.first_feature(chunk);
            const Size width = chunks.first_feature(chunk + 1) - first;
            for (Size row = 0; row < rows.n_rows; row += group) {
                const Size count = std::min(group, rows.n_rows - row);
                Output<T> window = output_to(z, stride, features.n_features());
                window.first_row = row;
                window.first_column = first;
                const Piece piece{row, count, chunks.first_part(chunk),
                                  chunks.first_part(chunk + 1)};
                if (!features.write(code, rows, piece, window, z + z_size))
                    fine.store(false, std::memory_order_relaxed);
                code.add_outer_products(z, stride, count, width, factors + row * n_targets,
                                        n_targets, out + first * n_targets);
            }
        },
        true);
    return fine;
}

}  // namespace

template <class T> bool add_transposed(const Operator<T>& features, const Rows<T>& rows,
                                       const T* factors, Size n_targets, double* out) {
    const VectorCode<T>& code = vector_code<T>();
    const Size least = chunk_bytes / (rows_of_group(n_targets) * static_cast<Size>(sizeof(T)));
    const Chunks chunks(features, least);
    // Every chunk reads the rows again, which only pays if the sums of all features exceed a cache.
    const Size sum_bytes = features.n_features() * n_targets * static_cast<Size>(sizeof(double));
    if (sum_bytes > 4 * chunk_bytes && features.resumes() && chunks.count() >= 2 * max_threads() &&
        chunks.widest() <= 2 * least)
        return add_transposed_by_chunks(features, chunks, rows, factors, n_targets, out) &&
               are_finite(out, features.n_features() * n_targets);
    const Size n_features = features.n_features(), stride = padded_stride(n_features);
    const Size block = rows_of_block<T>(rows.n_rows, stride, n_targets);
    const AlignedBuffer<T> z(block * stride);
    bool fine = true;
    for (Size row = 0; row < rows.n_rows; row += block) {
        const Size count = std::min(block, rows.n_rows - row);
        fine &= features.run(code, some_rows(rows, row, count),
                             output_to(z.data(), stride, n_features));
        add_transposed_block(code, z.data(), stride, count, n_features, factors + row * n_targets,
                             n_targets, out);
    }
    return fine && are_finite(out, n_features * n_targets);
}

// ---------------------------------------------------------------- gradients

template <class T, class Weight>
double add_gradient(const Operator<T>& features, const Rows<T>& rows, const Weight* weights,
                    const double* intercept, Size n_targets, const Loss& loss,
                    const Targets& targets, double* outputs, double* out, double* sums) {
    const VectorCode<T>& code = vector_code<T>();
    const Size n_features = features.n_features(), stride = padded_stride(n_features);
    const Size block = rows_of_block<T>(rows.n_rows, stride, n_targets);
    const PackedWeights<T> packed(features, weights, n_targets);
    const AlignedBuffer<T> z(block * stride);
    const AlignedBuffer<T> factors(block * n_targets);
    const AlignedBuffer<double> parts(packed.chunks().count() * block * n_targets);
    bool fine = true;
    double sum = 0;
    for (Size row = 0; row < rows.n_rows; row += block) {
        const Size count = std::min(block, rows.n_rows - row);
        double* f = outputs + row * n_targets;
        fine &= features.run(code, some_rows(rows, row, count),
                             output_to(z.data(), stride, n_features));
        packed.multiply(code, z.data(), stride, count, intercept, f, n_targets, parts.data());
        add_losses(loss, targets_from(targets, row, n_targets), f, count, n_targets, factors.data(),
                   sums, sum);
        add_transposed_block(code, z.data(), stride, count, n_features, factors.data(), n_targets,
                             out);
    }
    fine &= std::isfinite(sum) && are_finite(sums, n_targets) &&
            are_finite(outputs, rows.n_rows * n_targets) && are_finite(out, n_features * n_targets);
    return fine ? sum : std::numeric_limits<double>::quiet_NaN();
}

#define KITCHENETTE_INSTANTIATE(T)   \
    template class PackedWeights<T>; \
    template class Linear<T>;        \
    template bool add_transposed<T>(const Operator<T>&, const Rows<T>&, const T*, Size, double*);
#define KITCHENETTE_INSTANTIATE_WEIGHTS(T, Weight)                                             \
    template Linear<T>::Linear(SharedOperator<T>, const Weight*, const double*, Size);         \
    template double add_gradient<T, Weight>(const Operator<T>&, const Rows<T>&, const Weight*, \
                                            const double*, Size, const Loss&, const Targets&,  \
                                            double*, double*, double*);
KITCHENETTE_INSTANTIATE(float)
KITCHENETTE_INSTANTIATE(double)
KITCHENETTE_INSTANTIATE_WEIGHTS(float, float)
KITCHENETTE_INSTANTIATE_WEIGHTS(float, double)
KITCHENETTE_INSTANTIATE_WEIGHTS(double, double)

}  // namespace kitchenette
