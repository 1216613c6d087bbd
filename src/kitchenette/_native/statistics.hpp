// Statistics for least squares: what is known of features and targets, changed in single steps.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "gram.hpp"

namespace kitchenette {

// Numbers that several objects may hold, for example an array of NumPy and the statistics.
using Numbers = std::shared_ptr<double>;

Numbers zeros(Size count);  // throws std::bad_alloc

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
    Size n_rows = 0;      // whatever their weights
    double count = 0;     // the sum of the weights
    bool single = false;  // whether some features came as float32
    // The weighted sums of products of centred features (packed), of these and centred targets, and
    // of centred targets; and the weighted means.
    Numbers gram, cross, target_gram, feature_mean, target_mean;

    Moments(Size features, Size targets);  // all zero
    // With arrays that are given later, or never, if an exception follows.
    static Moments without_arrays(Size features, Size targets);

    Size gram_size() const { return n_features * (n_features + 1) / 2; }
    Size cross_size() const { return n_features * n_targets; }
    Size target_gram_size() const { return n_targets * n_targets; }

  private:
    Moments() = default;
};

class PendingRows;  // rows of one or more batches that wait for their product

class Statistics {
  public:
    Statistics(Size n_features, Size n_targets) : moments_(n_features, n_targets) {}
    explicit Statistics(Moments moments) : moments_(std::move(moments)) {}

    // Adds or removes rows. Everything is checked and all memory is allocated first: if an
    // exception is thrown, nothing has changed.
    template <class T> void update(const Batch<T>& batch, bool remove, const Blas& blas);

    // Adds the rows that other statistics have seen, possibly these themselves.
    void merge(const Statistics& other);

    std::unique_ptr<Statistics> copy() const;
    // A copy with more targets, all zero but those at `columns`.
    std::unique_ptr<Statistics> with_targets(const std::int64_t* columns, Size n_columns,
                                             Size n_targets) const;

    Size n_features() const { return moments_.n_features; }
    Size n_targets() const { return moments_.n_targets; }
    // All numbers of one moment; arrays are shared and go on changing.
    Moments moments() const;
    std::uint64_t version() const;
    // A copy of an array of one moment.
    std::vector<double> copied(Numbers Moments::* array, Size size) const;

  private:
    void merge_locked(const Moments& other);

    mutable std::mutex mutex_;
    Moments moments_;
    std::uint64_t version_ = 0;
};

// Rows of many batches on their way into new statistics: they are multiplied when there are many,
// because each product goes through the whole Gram matrix once.
class Accumulator {
  public:
    // The number of rows to come, with one more for each batch, may be less than expected or more.
    Accumulator(Size n_features, Size n_targets, Size expected_rows, bool single);
    ~Accumulator();

    template <class T> void add(const Batch<T>& batch, const Blas& blas);
    std::unique_ptr<Statistics> finish(const Blas& blas);

  private:
    std::mutex mutex_;
    std::unique_ptr<Moments> moments_;  // null after `finish` and after an error
    std::unique_ptr<PendingRows> pending_;
};

}  // namespace kitchenette
