#include "operator.hpp"

#include <atomic>

#include "blocks.hpp"
#include "threads.hpp"

namespace kitchenette {
namespace {

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

template <class T> bool Concatenation<T>::resumes() const {
    return std::all_of(operators_.begin(), operators_.end(),
                       [](const auto& one) { return one->resumes(); });
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

#define KITCHENETTE_INSTANTIATE(T)                           \
    template bool all_finite<T>(const Rows<T>&, Size, Size); \
    template class Operator<T>;                              \
    template class Chain<T>;                                 \
    template class Concatenation<T>;
KITCHENETTE_INSTANTIATE(float)
KITCHENETTE_INSTANTIATE(double)

}  // namespace kitchenette
