// Sufficient statistics for least squares, which change atomically.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <variant>
#include <vector>

#include "gram.hpp"
#include "threads.hpp"

namespace kitchenette {

// Numbers that several objects may hold, for example an array of NumPy and the statistics.
template <class T> using NumbersOf = std::shared_ptr<T>;
using Numbers = NumbersOf<double>;
// A Gram matrix is stored in double or single precision, which never changes.
using Gram = std::variant<Numbers, NumbersOf<float>>;

template <class T> NumbersOf<T> zeros(Size count);  // throws std::bad_alloc

// Rows to be added or removed. Z is float or double; weights may be null, which means 1.
template <class T> struct Batch {
    const T* z;
    Size stride;  // numbers between rows of Z
    const double* y;
    const double* weights;
    Size n_rows;
};

// The numbers of `Statistics`, without its lock.
struct Moments {
    Size n_features, n_targets;
    Size n_rows = 0;           // regardless of their weights
    double count = 0;          // the sum of the weights
    bool has_float32 = false;  // whether some of the features were float32
    // The weighted sums of products of centered features (packed), of centered features and
    // targets, and of centered targets; and the weighted means.
    Gram gram;
    Numbers cross, target_gram, feature_mean, target_mean;

    Moments(Size features, Size targets, bool float32_gram);  // all zero
    // The arrays are null and set by the caller.
    static Moments without_arrays(Size features, Size targets);

    bool has_float32_gram() const { return std::holds_alternative<NumbersOf<float>>(gram); }
    Size gram_size() const { return n_features * (n_features + 1) / 2; }
    Size cross_size() const { return n_features * n_targets; }
    Size target_gram_size() const { return n_targets * n_targets; }

  private:
    Moments() = default;
};

class PendingRows;  // a buffer of rows that have not been multiplied yet

class Statistics {
  public:
    // The Gram matrix is stored in float or double.
    Statistics(Size n_features, Size n_targets, bool float32_gram)
        : moments_(n_features, n_targets, float32_gram) {}
    explicit Statistics(Moments moments) : moments_(std::move(moments)) {}

    // Adds or removes rows. Everything is checked and all memory is allocated first: if an
    // exception is thrown, nothing has changed.
    template <class T> void update(const Batch<T>& batch, bool remove, const Blas& blas);

    // Adds the rows of other statistics, which may be these themselves, or have a Gram matrix in
    // another precision.
    void merge(const Statistics& other);

    std::unique_ptr<Statistics> copy() const;
    // A copy with more targets: the present ones at `columns`, the others zero.
    std::unique_ptr<Statistics> with_targets(const std::int64_t* columns, Size n_columns,
                                             Size n_targets) const;

    Size n_features() const { return moments_.n_features; }
    Size n_targets() const { return moments_.n_targets; }
    // A consistent snapshot of the scalars; the arrays are shared and change with the statistics.
    Moments moments() const;
    std::uint64_t version() const;
    // A consistent copy of an array.
    std::vector<double> copied(Numbers Moments::* array, Size size) const;

  private:
    void merge_locked(const Moments& other);

    mutable ProcessMutex mutex_;
    Moments moments_;
    std::uint64_t version_ = 0;
};

// Builds statistics from many batches. Rows are buffered and multiplied in large blocks, because
// each product reads and writes the whole Gram matrix.
class Accumulator {
  public:
    // expected_rows, which includes one row for each batch, is only an estimate.
    Accumulator(Size n_features, Size n_targets, Size expected_rows, bool in_float32,
                bool float32_gram);
    ~Accumulator();

    template <class T> void add(const Batch<T>& batch, const Blas& blas);
    std::unique_ptr<Statistics> finish(const Blas& blas);

  private:
    ProcessMutex mutex_;
    std::unique_ptr<Moments> moments_;  // null after `finish` and after an error
    std::unique_ptr<PendingRows> pending_;
};

}  // namespace kitchenette
