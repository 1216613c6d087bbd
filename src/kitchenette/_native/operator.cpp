#include "operator.hpp"

#include <atomic>
#include <cmath>

#include "threads.hpp"

namespace kitchenette {
namespace {

constexpr Size wide_bytes = Size{1} << 24;  // of the features of a few rows that threads share

// The stride of rows of n numbers in scratch memory: whole cache lines, but not a power of two of
// them, which would map all rows to the same cache sets.
Size padded_stride(Size n) {
    return ceil_divide(n, 16) * 16 + 16;
}

// The division of the parts of a unit of rows into tasks. With few rows the threads share the
// parts.
class Shares {
  public:
    Shares(Size units, Size parts, Size parts_per_thread)
        : parts_(parts),
          count_(units >= 2 * max_threads()
                     ? 1
                     : std::min(parts, ceil_divide(parts_per_thread * max_threads(), units))),
          size_(ceil_divide(parts, count_)) {}
    Size count() const { return count_; }
    Size first(Size task) const { return std::min(parts_, task % count_ * size_); }
    Size last(Size task) const { return std::min(parts_, first(task) + size_); }

  private:
    Size parts_, count_, size_;
};

// The rows of a matrix in the order of memory.
template <class T>
Rows<T> dense_rows_of(const T* values, Size stride, Size n_rows, Size n_columns) {
    Rows<T> rows;
    rows.n_rows = n_rows;
    rows.n_columns = n_columns;
    rows.values = values;
    rows.stride = stride;
    return rows;
}

template <class T> Output<T> output_to(T* data, Size stride, Size n_columns) {
    Output<T> out;
    out.data = data;
    out.stride = stride;
    out.n_columns = n_columns;
    return out;
}

// The rows [row, row + count) as rows of their own.
template <class T> Rows<T> some_rows(const Rows<T>& rows, Size row, Size count) {
    Rows<T> some = rows;
    some.n_rows = count;
    if (rows.sparse())
        some.starts = rows.starts + row;
    else
        some.values = rows.values + row * rows.stride;
    return some;
}

template <class Number> bool are_finite(const Number* x, Size n) {
    bool fine = true;
    for (Size i = 0; i < n; ++i) fine &= std::isfinite(x[i]);
    return fine;
}

}  // namespace

template <class T> bool all_finite(const Rows<T>& rows, Size row, Size count) {
    if (rows.sparse())
        return are_finite(rows.values + rows.starts[row],
                          rows.starts[row + count] - rows.starts[row]);
    bool fine = true;
    for (Size r = row; r < row + count; ++r)
        fine &= are_finite(rows.values + r * rows.stride, rows.n_columns);
    return fine;
}

// ---------------------------------------------------------------- any operator

template <class T> bool Operator<T>::write(const Code& code, const Rows<T>& rows,
                                           const Piece& piece, const Output<T>& out,
                                           T* scratch) const {
    const Units units(piece.count, pace(code));
    bool fine = true;
    for (Size unit = 0; unit < units.count(); ++unit) {
        Piece part = piece;
        part.row = piece.row + units.first_row(unit);
        part.count = units.rows(unit);
        part.continued = piece.continued && units.count() == 1;
        fine &= write_unit(code, rows, part, out, scratch);
    }
    return fine;
}

template <class T>
bool Operator<T>::run(const Code& code, const Rows<T>& rows, const Output<T>& out) const {
    if (rows.n_rows == 0) return true;
    const Pace pace = this->pace(code);
    const Units units(rows.n_rows, pace);
    const Shares shares(units.count(), n_parts(), pace.shares_per_thread);
    std::atomic<bool> fine{true};
    parallel<T>(units.count() * shares.count(), rows.n_rows * work(),
                scratch_size(code, rows.n_rows, rows.sparse()), [&](Size task, T* memory) {
                    const Size unit = task / shares.count();
                    const Piece piece{units.first_row(unit), units.rows(unit), shares.first(task),
                                      shares.last(task)};
                    if (!write_unit(code, rows, piece, out, memory))
                        fine.store(false, std::memory_order_relaxed);
                });
    return fine;
}

// ---------------------------------------------------------------- chains

template <class T> Chain<T>::Chain(SharedOperator<T> first, SharedOperator<T> second)
    : Operator<T>(first->n_columns(), second->n_features()),
      first_(std::move(first)),
      second_(std::move(second)) {}

template <class T> Size Chain<T>::stride() const {
    return padded_stride(first_->n_features());
}

template <class T> Pace Chain<T>::pace(const Code& code) const {
    const Pace first = first_->pace(code), second = second_->pace(code);
    const Size rows = std::max(first.rows, second.rows), lanes = code.lanes;
    if (rows <= lanes) return {rows, std::max(first.few, second.few), 1};
    // For operators that read weights once for many rows: as many rows as fit a part of the cache.
    const Size fit = (Size{1} << 22) / (stride() * static_cast<Size>(sizeof(T)));
    return {std::clamp(fit, std::min(rows, Size{16}), rows), 0, 1};
}

template <class T>
Size Chain<T>::unit_scratch_size(const Code& code, Size count, bool sparse) const {
    // The second operator's scratch memory must be preserved if a piece is continued.
    return count * stride() + std::max(first_->scratch_size(code, count, sparse),
                                       second_->scratch_size(code, count, false));
}

template <class T> bool Chain<T>::write_unit(const Code& code, const Rows<T>& rows,
                                             const Piece& piece, const Output<T>& out,
                                             T* scratch) const {
    T* wide = scratch;
    T* rest = scratch + piece.count * stride();
    bool fine = true;
    if (!piece.continued) {
        Output<T> features = output_to(wide, stride(), first_->n_features());
        features.first_row = piece.row;
        const Piece all{piece.row, piece.count, 0, first_->n_parts()};
        fine = first_->write(code, rows, all, features, rest);
    }
    const Rows<T> z = dense_rows_of<T>(wide, stride(), piece.count, first_->n_features());
    Piece second = piece;
    second.row = 0;
    Output<T> target = out;
    target.first_row = out.first_row - piece.row;
    return second_->write(code, z, second, target, rest) && fine;
}

template <class T>
bool Chain<T>::run(const Code& code, const Rows<T>& rows, const Output<T>& out) const {
    const Pace pace = this->pace(code);
    if (pace.rows <= code.lanes && Units(rows.n_rows, pace).count() >= 2 * max_threads())
        return Operator<T>::run(code, rows, out);
    // With few rows, or with weights that are better read for many rows at a time, the threads
    // share the features of the first, and then those of the second.
    const Size n = first_->n_features();
    const Size fit = wide_bytes / (n * static_cast<Size>(sizeof(T)));
    const Size block = std::clamp(fit, Size{1}, std::max(rows.n_rows, Size{1}));
    const AlignedBuffer<T> wide(block * stride());
    bool fine = true;
    for (Size row = 0; row < rows.n_rows; row += block) {
        const Size count = std::min(block, rows.n_rows - row);
        Output<T> target = out;
        target.first_row = out.first_row - row;
        fine &= first_->run(code, some_rows(rows, row, count), output_to(wide.data(), stride(), n));
        fine &= second_->run(code, dense_rows_of<T>(wide.data(), stride(), count, n), target);
    }
    return fine;
}

// ---------------------------------------------------------------- side by side

template <class T> Concatenation<T>::Concatenation(std::vector<SharedOperator<T>> operators)
    : Operator<T>(operators.front()->n_columns(),
                  [&] {
                      Size n = 0;
                      for (const auto& one : operators) n += one->n_features();
                      return n;
                  }()),
      operators_(std::move(operators)),
      first_parts_{0},
      first_features_{0} {
    for (const auto& one : operators_) {
        first_parts_.push_back(first_parts_.back() + one->n_parts());
        first_features_.push_back(first_features_.back() + one->n_features());
    }
}

template <class T> Size Concatenation<T>::first_feature(Size part) const {
    std::size_t k = 0;
    while (part > first_parts_[k + 1]) ++k;
    return first_features_[k] + operators_[k]->first_feature(part - first_parts_[k]);
}

template <class T> Size Concatenation<T>::work() const {
    Size work = 0;
    for (const auto& one : operators_) work += one->work();
    return work;
}

template <class T> Pace Concatenation<T>::pace(const Code& code) const {
    Pace common{1, 0, 1};
    for (const auto& one : operators_) {
        const Pace pace = one->pace(code);
        common.rows = std::max(common.rows, pace.rows);
        common.few = std::max(common.few, pace.few);
    }
    if (common.rows > code.lanes) common.few = 0;
    return common;
}

// Where the features of operator k go.
template <class T> Output<T> Concatenation<T>::part_of(const Output<T>& out, std::size_t k) const {
    Output<T> part = out;
    part.n_columns = operators_[k]->n_features();
    part.first_column = out.first_column - first_features_[k];
    return part;
}

template <class T>
Size Concatenation<T>::unit_scratch_size(const Code& code, Size count, bool sparse) const {
    Size size = 0;
    for (const auto& one : operators_)
        size += ceil_divide(one->scratch_size(code, count, sparse), 16) * 16;
    return size;
}

template <class T> bool Concatenation<T>::write_unit(const Code& code, const Rows<T>& rows,
                                                     const Piece& piece, const Output<T>& out,
                                                     T* scratch) const {
    bool fine = true;
    for (std::size_t k = 0; k < operators_.size(); ++k) {
        const Size first = std::max(piece.first_part, first_parts_[k]);
        const Size last = std::min(piece.last_part, first_parts_[k + 1]);
        if (first < last) {
            Piece part = piece;
            part.first_part = first - first_parts_[k];
            part.last_part = last - first_parts_[k];
            part.continued = piece.continued && part.first_part > 0;
            fine &= operators_[k]->write(code, rows, part, part_of(out, k), scratch);
        }
        scratch +=
            ceil_divide(operators_[k]->scratch_size(code, piece.count, rows.sparse()), 16) * 16;
    }
    return fine;
}

template <class T>
bool Concatenation<T>::run(const Code& code, const Rows<T>& rows, const Output<T>& out) const {
    bool fine = true;
    for (std::size_t k = 0; k < operators_.size(); ++k)
        fine &= operators_[k]->run(code, rows, part_of(out, k));
    return fine;
}

// ---------------------------------------------------------------- features times weights

template <class T> template <class Weight>
Linear<T>::Linear(SharedOperator<T> features, const Weight* weights, const double* intercept,
                  Size n_targets)
    : features_(std::move(features)),
      n_targets_(n_targets),
      chunks_{0},
      weights_(static_cast<std::size_t>(features_->n_features() * n_targets)),
      intercept_(intercept, intercept + n_targets) {
    for (Size part = 1; part <= features_->n_parts(); ++part) {
        const Size begin = features_->first_feature(chunks_.back());
        const Size width = features_->first_feature(part) - begin;
        if (width < stretch && part < features_->n_parts()) continue;
        widest_chunk_ = std::max(widest_chunk_, width);
        chunks_.push_back(part);
    }
    T* packed = weights_.data();
    for (std::size_t chunk = 0; chunk + 1 < chunks_.size(); ++chunk) {
        const Size end = first_feature(chunk + 1);
        for (Size begin = first_feature(chunk); begin < end; begin += stretch)
            for (Size target = 0; target < n_targets; ++target)
                for (Size f = begin; f < std::min(end, begin + stretch); ++f)
                    *packed++ = static_cast<T>(weights[f * n_targets + target]);
    }
}

template <class T> Size Linear<T>::first_feature(std::size_t chunk) const {
    return features_->first_feature(chunks_[chunk]);
}

// sums += features of a chunk times their weights; z holds the features of the chunk alone.
template <class T> void Linear<T>::multiply_chunk(const VectorCode<T>& code, std::size_t chunk,
                                                  const T* z, Size z_stride, Size n_rows,
                                                  double* sums) const {
    const Size first = first_feature(chunk), end = first_feature(chunk + 1);
    for (Size begin = first; begin < end; begin += stretch)
        code.add_dot_products(z + (begin - first), z_stride, n_rows, std::min(stretch, end - begin),
                              weights_.data() + begin * n_targets_, n_targets_, sums);
}

template <class T>
bool Linear<T>::finish(const double* totals, Size n_rows, double* out, Size stride) const {
    bool fine = true;
    for (Size r = 0; r < n_rows; ++r)
        for (Size c = 0; c < n_targets_; ++c) {
            out[r * stride + c] =
                totals[r * n_targets_ + c] + intercept_[static_cast<std::size_t>(c)];
            fine &= std::isfinite(out[r * stride + c]);
        }
    return fine;
}

// Rows that one thread computes at a time: their features of a chunk stay in the cache.
template <class T> Pace Linear<T>::unit_pace(const VectorCode<T>& code) const {
    Pace pace = features_->pace(code);
    if (pace.rows <= code.lanes) return pace;
    const Size bytes = widest_chunk_ * static_cast<Size>(sizeof(T));
    const Size least = std::min(pace.rows, Size{16});
    pace.rows = std::clamp((Size{1} << 18) / bytes, least, pace.rows);
    return pace;
}

template <class T> bool Linear<T>::run(const Rows<T>& rows, double* out, Size stride) const {
    const VectorCode<T>& code = vector_code<T>();
    const Pace pace = unit_pace(code);
    if (Units(rows.n_rows, pace).count() >= 2 * max_threads())
        return run_by_units(code, rows, pace, out, stride);
    bool fine = true;
    const Size most = most_rows_together();
    for (Size row = 0; row < rows.n_rows; row += most)
        fine &= run_together(code, rows, row, std::min(most, rows.n_rows - row), out + row * stride,
                             stride);
    return fine;
}

template <class T> bool Linear<T>::run_by_units(const VectorCode<T>& code, const Rows<T>& rows,
                                                const Pace& pace, double* out, Size stride) const {
    const Units units(rows.n_rows, pace);
    const Size z_stride = padded_stride(widest_chunk_);
    const Size sums_size = padded_stride(pace.rows * n_targets_);  // of doubles
    const Size doubles = 2 * sums_size * static_cast<Size>(sizeof(double) / sizeof(T));
    const Size z_size = pace.rows * z_stride;
    std::atomic<bool> fine{true};
    parallel<T>(
        units.count(), rows.n_rows * (features_->work() + features_->n_features() * n_targets_ / 8),
        doubles + z_size + features_->scratch_size(code, pace.rows, rows.sparse()),
        [&](Size unit, T* memory) {
            const Size row = units.first_row(unit), count = units.rows(unit);
            double* totals = reinterpret_cast<double*>(memory);
            double* sums = totals + sums_size;
            T* z = memory + doubles;
            bool good = true;
            std::fill(totals, totals + count * n_targets_, 0.0);
            for (std::size_t chunk = 0; chunk + 1 < chunks_.size(); ++chunk) {
                Output<T> window = output_to(z, z_stride, features_->n_features());
                window.first_row = row;
                window.first_column = first_feature(chunk);
                const Piece piece{row, count, chunks_[chunk], chunks_[chunk + 1], chunk > 0};
                good &= features_->write(code, rows, piece, window, z + z_size);
                std::fill(sums, sums + count * n_targets_, 0.0);
                multiply_chunk(code, chunk, z, z_stride, count, sums);
                for (Size i = 0; i < count * n_targets_; ++i) totals[i] += sums[i];
            }
            good &= finish(totals, count, out + row * stride, stride);
            if (!good) fine.store(false, std::memory_order_relaxed);
        });
    return fine;
}

template <class T> Size Linear<T>::most_rows_together() const {
    const Size bytes = features_->n_features() * static_cast<Size>(sizeof(T));
    return std::max(Size{1}, wide_bytes / bytes);
}

// Few rows: the threads share their features, and then the products with the chunks of these.
template <class T> bool Linear<T>::run_together(const VectorCode<T>& code, const Rows<T>& rows,
                                                Size row, Size count, double* out,
                                                Size stride) const {
    const Size n_features = features_->n_features(), z_stride = padded_stride(n_features);
    const Size n_chunks = static_cast<Size>(chunks_.size()) - 1, n_sums = count * n_targets_;
    const AlignedBuffer<T> z(count * z_stride);
    const bool fine = features_->run(code, some_rows(rows, row, count),
                                     output_to(z.data(), z_stride, n_features));
    std::vector<double> sums(static_cast<std::size_t>(n_chunks * n_sums), 0.0);
    parallel<T>(n_chunks, n_sums * n_features / 16, 0, [&](Size task, T*) {
        const std::size_t chunk = static_cast<std::size_t>(task);
        multiply_chunk(code, chunk, z.data() + first_feature(chunk), z_stride, count,
                       sums.data() + task * n_sums);
    });
    std::vector<double> totals(static_cast<std::size_t>(n_sums), 0.0);
    for (Size chunk = 0; chunk < n_chunks; ++chunk)
        for (Size i = 0; i < n_sums; ++i)
            totals[static_cast<std::size_t>(i)] +=
                sums[static_cast<std::size_t>(chunk * n_sums + i)];
    return finish(totals.data(), count, out, stride) && fine;
}

// ---------------------------------------------------------------- transposed products

template <class T> bool add_transposed(const Operator<T>& features, const Rows<T>& rows,
                                       const T* factors, Size n_targets, double* out) {
    constexpr Size group = 128;    // rows whose products are added in T
    constexpr Size columns = 512;  // features that a thread multiplies at a time
    const VectorCode<T>& code = vector_code<T>();
    const Size n_features = features.n_features(), stride = padded_stride(n_features);
    const Size fit = wide_bytes / (stride * static_cast<Size>(sizeof(T)));
    const Size block = std::min(rows.n_rows, std::max(Size{1}, fit / group) * group);
    const AlignedBuffer<T> z(block * stride);
    bool fine = true;
    for (Size row = 0; row < rows.n_rows; row += block) {
        const Size count = std::min(block, rows.n_rows - row);
        fine &= features.run(code, some_rows(rows, row, count),
                             output_to(z.data(), stride, n_features));
        parallel<T>(
            ceil_divide(n_features, columns), count * n_features * n_targets / 8, 0,
            [&](Size task, T*) {
                const Size first = task * columns, width = std::min(columns, n_features - first);
                for (Size r = 0; r < count; r += group)
                    code.add_outer_products(
                        z.data() + r * stride + first, stride, std::min(group, count - r), width,
                        factors + (row + r) * n_targets, n_targets, out + first * n_targets);
            });
    }
    return fine && are_finite(out, n_features * n_targets);
}

#define KITCHENETTE_INSTANTIATE(T)                           \
    template bool all_finite<T>(const Rows<T>&, Size, Size); \
    template class Operator<T>;                              \
    template class Chain<T>;                                 \
    template class Concatenation<T>;                         \
    template class Linear<T>;                                \
    template bool add_transposed<T>(const Operator<T>&, const Rows<T>&, const T*, Size, double*);
KITCHENETTE_INSTANTIATE(float)
KITCHENETTE_INSTANTIATE(double)
template Linear<float>::Linear(SharedOperator<float>, const float*, const double*, Size);
template Linear<float>::Linear(SharedOperator<float>, const double*, const double*, Size);
template Linear<double>::Linear(SharedOperator<double>, const double*, const double*, Size);

}  // namespace kitchenette
