#include "statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

namespace kitchenette {

namespace {

constexpr Size block_rows = 4096;  // of a product
// The ranges of magnitudes whose sums of squares do not overflow or underflow.
constexpr double smallest_float32 = 1e-10, largest_float32 = 1e10, largest_double = 1e140;
constexpr double largest_gram = 1e30;  // of the sum of squares of a batch, in a matrix of floats
constexpr Size bound = Size{1} << 31;  // of the sizes that the BLAS takes
constexpr Size converted_rows = 64;    // of float32 that are multiplied as float64, at a time

using Vector = std::vector<double>;

std::string short_number(double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%g", value);
    return text;
}

void refuse_unless(bool condition, const std::string& sentence) {
    if (!condition) throw std::invalid_argument(sentence);
}

bool all_finite(const Vector& numbers) {
    return std::all_of(numbers.begin(), numbers.end(), [](double x) { return std::isfinite(x); });
}

// Throws scikit-learn's error message if a matrix has NaN, infinity or too large numbers.
template <class T>
void check_finite(const T* values, Size stride, Size n_rows, Size n_columns, const char* name) {
    bool infinite = false;
    for (Size i = 0; i < n_rows; ++i)
        for (Size j = 0; j < n_columns; ++j) {
            const T value = values[i * stride + j];
            refuse_unless(!std::isnan(value), "Input " + std::string(name) + " contains NaN.");
            infinite |= std::isinf(value);
        }
    refuse_unless(!infinite, "Input " + std::string(name) +
                                 " contains infinity or a value too large for dtype('" +
                                 (sizeof(T) == 4 ? "float32" : "float64") + "').");
}

// The sum of numbers by halves, so that the rounding errors of many of them stay small.
double pairwise_sum(const double* numbers, Size count) {
    if (count <= 64) {
        double sum = 0;
        for (Size i = 0; i < count; ++i) sum += numbers[i];
        return sum;
    }
    const Size half = count / 2;
    return pairwise_sum(numbers, half) + pairwise_sum(numbers + half, count - half);
}

double largest_magnitude(const Vector& numbers) {
    double largest = 0;
    for (const double x : numbers) largest = std::max(largest, std::abs(x));
    return largest;
}

// The means and the checked weights of a batch, computed before the products. All errors in its
// rows are detected here.
struct Measured {
    double count = 0;
    Vector weight_roots;  // of the weights; empty if there are none
    Vector feature_mean, target_mean;
    Vector feature_step, target_step;  // from the means of the statistics to those of the batch
    bool in_float32 = false;           // whether the products can be computed in float32

    const double* weight_roots_from(Size row) const {
        return weight_roots.empty() ? nullptr : &weight_roots[row];
    }
};

double checked_weights(const double* weights, Size n_rows, Vector& weight_roots) {
    if (!weights) return static_cast<double>(n_rows);
    weight_roots.resize(static_cast<std::size_t>(n_rows));
    for (Size i = 0; i < n_rows; ++i) {
        refuse_unless(std::isfinite(weights[i]) && weights[i] >= 0,
                      "sample_weight must be finite and not negative.");
        weight_roots[static_cast<std::size_t>(i)] = std::sqrt(weights[i]);
    }
    return pairwise_sum(weights, n_rows);
}

Vector mean_of(Vector sums, double count) {
    for (double& x : sums) x /= count;
    return sums;
}

Vector step_from(const double* before, const Vector& mean) {
    Vector step = mean;
    for (std::size_t j = 0; j < step.size(); ++j) step[j] -= before[j];
    return step;
}

template <class T> Measured measured(const Batch<T>& batch, const Moments& known) {
    const Size D = known.n_features, k = known.n_targets;
    Measured result;
    result.count = checked_weights(batch.weights, batch.n_rows, result.weight_roots);
    Vector sums(static_cast<std::size_t>(D)), target_sums(static_cast<std::size_t>(k));
    const double peak =
        add_column_sums(batch.z, batch.stride, batch.n_rows, D, batch.weights, sums.data());
    const double target_peak =
        add_column_sums(batch.y, k, batch.n_rows, k, batch.weights, target_sums.data());
    if (!all_finite(sums)) check_finite(batch.z, batch.stride, batch.n_rows, D, "Z");
    if (!all_finite(target_sums)) check_finite(batch.y, k, batch.n_rows, k, "Y");
    if (result.count == 0) return result;
    const double heaviest =
        batch.weights ? *std::max_element(batch.weights, batch.weights + batch.n_rows) : 1.0;
    const double root = std::sqrt(heaviest);
    const double most = std::max(1.0, root) * std::max(peak, target_peak);
    refuse_unless(most <= largest_double && std::isfinite(result.count),
                  "Z, Y or sample_weight is too large for sums of squares in float64: the largest "
                  "number times the root of its weight is " +
                      short_number(most) + ". Scale the data down.");
    const double all = root * peak * (root * peak) * static_cast<double>(batch.n_rows);
    refuse_unless(!known.has_float32_gram() || all < largest_gram,
                  "Z or sample_weight is too large for sums of squares in float32: the largest "
                  "number times the root of its weight is " +
                      short_number(root * peak) + ". Scale the data down.");
    const double least = std::min(1.0, root) * std::min(peak, target_peak > 0 ? target_peak : peak);
    result.in_float32 =
        sizeof(T) == sizeof(float) && smallest_float32 < least && most < largest_float32;
    result.feature_mean = mean_of(std::move(sums), result.count);
    result.target_mean = mean_of(std::move(target_sums), result.count);
    result.feature_step = step_from(known.feature_mean.get(), result.feature_mean);
    result.target_step = step_from(known.target_mean.get(), result.target_mean);
    return result;
}

Vector times(double factor, Vector numbers) {
    for (double& x : numbers) x *= factor;
    return numbers;
}

// Centered rows in one precision, and the memory for their products.
template <class T> class Block {
  public:
    Block(Size capacity, Size n_features, Size n_targets)
        : capacity_(capacity),
          features_(capacity, n_features),
          targets_(capacity, n_targets),
          // Products of targets are always computed in double precision.
          exact_targets_(exact_in_place ? nullptr : new BufferedRows<double>(capacity, n_targets)),
          converted_(exact_in_place ? converted_rows * n_features : 0),
          products_(features_, capacity, n_targets),
          target_products_(exact_targets(), capacity, 0),
          packed_(static_cast<std::size_t>(n_targets * (n_targets + 1) / 2)) {}

    // The number of rows that can be added, with one place reserved for a difference of means.
    Size room() const { return capacity_ - n_rows_ - 1; }

    template <class S>
    void add(const Batch<S>& batch, Size first, Size count, const Measured& measured) {
        add_features(batch.z + first * batch.stride, batch.stride, count,
                     measured.feature_mean.data(), measured.weight_roots_from(first), n_rows_);
        const Size k = targets_.layout().n_columns;
        const auto add_targets = [&](auto& rows) {
            rows.center_and_round(batch.y + first * k, k, count, measured.target_mean.data(),
                                  measured.weight_roots_from(first), n_rows_);
        };
        add_targets(targets_);
        if (exact_targets_) add_targets(*exact_targets_);
        n_rows_ += count;
    }

    void add_row(const Vector& features, const Vector& targets) {
        features_.put(features.data(), n_rows_);
        targets_.put(targets.data(), n_rows_);
        if (exact_targets_) exact_targets_->put(targets.data(), n_rows_);
        ++n_rows_;
    }

    // Adds or subtracts the products of all rows and empties the buffer.
    void multiply(Moments& moments, double sign, const Blas& blas) {
        if (n_rows_ == 0) return;
        const auto add_products = [&](const auto& gram) {
            products_.add(features_, &targets_, n_rows_, sign, blas, gram.get(),
                          moments.cross.get());
        };
        std::visit(add_products, moments.gram);
        std::fill(packed_.begin(), packed_.end(), 0.0);
        target_products_.add(exact_targets(), nullptr, n_rows_, sign, blas, packed_.data(),
                             nullptr);
        add_square(moments.n_targets, moments.target_gram.get());
        n_rows_ = 0;
    }

  private:
    static constexpr bool exact_in_place = sizeof(T) == sizeof(double);

    const BufferedRows<double>& exact_targets() const {
        if constexpr (exact_in_place)
            return targets_;
        else
            return *exact_targets_;
    }

    void add_features(const T* z, Size stride, Size count, const double* mean,
                      const double* weight_roots, Size first) {
        features_.center(z, stride, count, mean, weight_roots, first);
    }

    // Rows of float32 whose products would overflow or underflow in float32.
    template <class S>
        requires(!std::is_same_v<S, T>)
    void add_features(const S* z, Size stride, Size count, const double* mean,
                      const double* weight_roots, Size first) {
        const Size D = features_.layout().n_columns;
        for (Size begin = 0; begin < count; begin += converted_rows) {
            const Size some = std::min(converted_rows, count - begin);
            for (Size i = 0; i < some; ++i)
                for (Size j = 0; j < D; ++j)
                    converted_.data()[i * D + j] = static_cast<T>(z[(begin + i) * stride + j]);
            features_.center(converted_.data(), D, some, mean,
                             weight_roots ? weight_roots + begin : nullptr, first + begin);
        }
    }

    // Adds the packed products of targets to a full symmetric matrix.
    void add_square(Size order, double* matrix) const {
        const Size half = (order + 1) / 2, even = 1 - order % 2, height = order + even;
        for (Size column = 0; column < order; ++column)
            for (Size row = column; row < order; ++row) {
                const Size place = column < half ? column * height + even + row
                                                 : (row - half + 1 - even) * height + column - half;
                const double value = packed_[static_cast<std::size_t>(place)];
                matrix[row * order + column] += value;
                if (row != column) matrix[column * order + row] += value;
            }
    }

    Size capacity_, n_rows_ = 0;
    BufferedRows<T> features_, targets_;
    std::unique_ptr<BufferedRows<double>> exact_targets_;
    AlignedBuffer<T> converted_;
    RowProducts<T> products_;
    RowProducts<double> target_products_;
    Vector packed_;
};

void move_mean(double* mean, const Vector& step, double part) {
    for (std::size_t j = 0; j < step.size(); ++j) mean[j] += part * step[j];
}

}  // namespace

// ---------------------------------------------------------------- buffered rows

// One block at a time, in the precision of the last batch.
class PendingRows {
  public:
    PendingRows(const Moments& moments, Size n_rows, bool in_float32)
        : capacity_(std::min(n_rows, block_rows + 1)),
          n_features_(moments.n_features),
          n_targets_(moments.n_targets) {
        allocate(in_float32);
    }

    // Adds rows and the difference of the means as one more row, times the root of `between`
    // (Chan, Golub and LeVeque 1979), and multiplies them whenever the memory is full. Nothing is
    // allocated if the first product is in the precision that was asked for.
    template <class T> void add(const Batch<T>& batch, const Measured& measured,
                                const Vector& feature_row, const Vector& target_row,
                                bool in_float32, double sign, const Blas& blas, Moments& moments) {
        if (in_float32 != (in_float32_ != nullptr)) {
            multiply(moments, sign, blas);
            allocate(in_float32);
        }
        const auto fill = [&](auto& block) {
            for (Size row = 0; row < batch.n_rows;) {
                if (block.room() <= 0) block.multiply(moments, sign, blas);
                const Size count = std::min(block.room(), batch.n_rows - row);
                block.add(batch, row, count, measured);
                row += count;
            }
            block.add_row(feature_row, target_row);
        };
        if constexpr (sizeof(T) == sizeof(float))
            if (in_float32_) return fill(*in_float32_);
        fill(*in_double_);
    }

    void multiply(Moments& moments, double sign, const Blas& blas) {
        if (in_float32_) in_float32_->multiply(moments, sign, blas);
        if (in_double_) in_double_->multiply(moments, sign, blas);
    }

  private:
    void allocate(bool in_float32) {
        in_float32_.reset();  // frees memory before new memory is allocated
        in_double_.reset();
        if (in_float32)
            in_float32_ = std::make_unique<Block<float>>(capacity_, n_features_, n_targets_);
        else
            in_double_ = std::make_unique<Block<double>>(capacity_, n_features_, n_targets_);
    }

    Size capacity_, n_features_, n_targets_;
    std::unique_ptr<Block<float>> in_float32_;
    std::unique_ptr<Block<double>> in_double_;
};

namespace {

// A batch, and the change of means and weights by adding or removing it.
struct Change {
    double part, between;

    static Change adding(double count, double more) {
        const double part = more / (count + more);
        return {part, count * part};
    }
    static Change removing(double count, double less) {
        const double part = less / (count - less);
        return {-part, count * part};
    }
};

// The difference of means as one more row, computed beforehand because this allocates memory.
struct DifferenceOfMeans {
    DifferenceOfMeans(const Measured& measured, double between)
        : features(times(std::sqrt(between), measured.feature_step)),
          targets(times(std::sqrt(between), measured.target_step)),
          in_float32(measured.in_float32 &&
                     std::max(largest_magnitude(features), largest_magnitude(targets)) <
                         largest_float32) {}
    Vector features, targets;
    bool in_float32;
};

void move(Moments& moments, const Measured& measured, double part) {
    move_mean(moments.feature_mean.get(), measured.feature_step, part);
    move_mean(moments.target_mean.get(), measured.target_step, part);
}

void fill_with_zeros(Moments& moments) {
    std::visit([&](const auto& gram) { std::fill_n(gram.get(), moments.gram_size(), 0); },
               moments.gram);
    std::fill_n(moments.cross.get(), moments.cross_size(), 0.0);
    std::fill_n(moments.target_gram.get(), moments.target_gram_size(), 0.0);
    std::fill_n(moments.feature_mean.get(), moments.n_features, 0.0);
    std::fill_n(moments.target_mean.get(), moments.n_targets, 0.0);
    moments.count = 0;
    moments.n_rows = 0;
    moments.has_float32 = false;
}

template <class T> NumbersOf<T> copy_of(const NumbersOf<T>& numbers, Size count) {
    NumbersOf<T> copied = zeros<T>(count);
    std::copy_n(numbers.get(), count, copied.get());
    return copied;
}

Gram copy_of_gram(const Moments& moments) {
    return std::visit([&](const auto& gram) -> Gram { return copy_of(gram, moments.gram_size()); },
                      moments.gram);
}

// Adds another packed matrix and between s s', column by column of the rectangle: a part of the
// trailing triangle, transposed, and then a column of the leading ones. Both matrices may be the
// same, so each number is read before it changes.
template <class To, class From>
void merge_gram(Size order, const From* more, double between, const Vector& s, To* gram) {
    const Size half = (order + 1) / 2, even = 1 - order % 2, height = order + even;
    parallel<double>(half, order * (order + 1) / 2, Size{0}, [&](Size c, double*) {
        To* to = gram + c * height;
        const From* from = more + c * height;
        const auto add = [&](Size i, double product) {
            to[i] = static_cast<To>(to[i] + (from[i] + product));
        };
        const Size row = c + half - 1 + even;
        const double of_row = row < order ? between * s[static_cast<std::size_t>(row)] : 0.0;
        for (Size i = 0; i < c + even; ++i) add(i, of_row * s[half + i]);
        const double of_column = between * s[static_cast<std::size_t>(c)];
        for (Size i = c + even; i < height; ++i) add(i, of_column * s[i - even]);
    });
}

}  // namespace

// ---------------------------------------------------------------- statistics

template <class T> NumbersOf<T> zeros(Size count) {
    auto* memory = static_cast<T*>(std::calloc(static_cast<std::size_t>(count), sizeof(T)));
    if (!memory) throw std::bad_alloc();
    return {memory, [](T* p) { std::free(p); }};
}

Moments Moments::without_arrays(Size features, Size targets) {
    refuse_unless(features >= 1 && targets >= 1,
                  "There must be at least one feature and one target.");
    refuse_unless(features < bound && targets < bound,
                  "Statistics have less than 2^31 features and targets.");
    Moments moments;
    moments.n_features = features;
    moments.n_targets = targets;
    return moments;
}

Moments::Moments(Size features, Size targets, bool float32_gram)
    : Moments(without_arrays(features, targets)) {
    if (float32_gram)
        gram = zeros<float>(gram_size());
    else
        gram = zeros<double>(gram_size());
    cross = zeros<double>(cross_size());
    target_gram = zeros<double>(target_gram_size());
    feature_mean = zeros<double>(n_features);
    target_mean = zeros<double>(n_targets);
}

template <class T> void Statistics::update(const Batch<T>& batch, bool remove, const Blas& blas) {
    const std::lock_guard lock(mutex_);
    const Measured measured = kitchenette::measured(batch, moments_);
    const Size n_rows = moments_.n_rows + (remove ? -batch.n_rows : batch.n_rows);
    const double left = moments_.count - measured.count;
    // If the last rows are removed, their weight has the rounding errors of all rows before them.
    const double tolerance = n_rows == 0 ? 1e-6 : 1e-12;
    const bool nothing_left = remove && std::abs(left) <= tolerance * moments_.count;
    refuse_unless(!remove || (batch.n_rows <= moments_.n_rows && (left >= 0 || nothing_left)),
                  "Cannot remove " + std::to_string(batch.n_rows) + " rows of total weight " +
                      short_number(measured.count) + ": only " + std::to_string(moments_.n_rows) +
                      " rows of total weight " + short_number(moments_.count) + " were added.");
    refuse_unless(!remove || n_rows > 0 || nothing_left,
                  "Cannot remove all " + std::to_string(batch.n_rows) + " rows with a weight of " +
                      short_number(measured.count) + ": they were added with a weight of " +
                      short_number(moments_.count) + ". Remove rows with the same weights.");
    if (nothing_left) {
        fill_with_zeros(moments_);
    } else if (measured.count > 0) {
        const Change change = remove ? Change::removing(moments_.count, measured.count)
                                     : Change::adding(moments_.count, measured.count);
        const DifferenceOfMeans row(measured, change.between);
        PendingRows pending(moments_, batch.n_rows + 1, row.in_float32);
        // From here on nothing can fail.
        const double sign = remove ? -1.0 : 1.0;
        pending.add(batch, measured, row.features, row.targets, row.in_float32, sign, blas,
                    moments_);
        pending.multiply(moments_, sign, blas);
        move(moments_, measured, change.part);
        moments_.count = remove ? left : moments_.count + measured.count;
        moments_.has_float32 = moments_.has_float32 || (!remove && sizeof(T) == sizeof(float));
    }
    moments_.n_rows = n_rows;
    ++version_;
}

void Statistics::merge(const Statistics& other) {
    refuse_unless(moments_.n_features == other.moments_.n_features &&
                      moments_.n_targets == other.moments_.n_targets,
                  "Cannot merge statistics of " + std::to_string(other.moments_.n_features) +
                      " features and " + std::to_string(other.moments_.n_targets) +
                      " targets into those of " + std::to_string(moments_.n_features) + " and " +
                      std::to_string(moments_.n_targets) + ".");
    if (&other == this) {
        const std::lock_guard lock(mutex_);
        merge_locked(Moments(moments_));
    } else {
        const std::scoped_lock lock(mutex_, other.mutex_);
        merge_locked(other.moments_);
    }
}

// The arrays of `other` may be those of these statistics, so each number is read before it changes.
void Statistics::merge_locked(const Moments& other) {
    if (other.count > 0) {
        Moments& mine = moments_;
        const Size D = mine.n_features, k = mine.n_targets;
        const double n = mine.count + other.count;
        const double between = mine.count * (other.count / n), part = other.count / n;
        const auto step = [](const Numbers& to, const Numbers& from, Size count) {
            return step_from(from.get(), Vector(to.get(), to.get() + count));
        };
        const Vector s = step(other.feature_mean, mine.feature_mean, D);
        const Vector t = step(other.target_mean, mine.target_mean, k);
        std::visit([&](const auto& to,
                       const auto& from) { merge_gram(D, from.get(), between, s, to.get()); },
                   mine.gram, other.gram);
        const auto add_outer = [&](Size n_rows, const Vector& left, double* to,
                                   const double* from) {
            for (Size i = 0; i < n_rows; ++i)
                for (Size j = 0; j < k; ++j)
                    to[i * k + j] += from[i * k + j] + between * (left[i] * t[j]);
        };
        add_outer(D, s, mine.cross.get(), other.cross.get());
        add_outer(k, t, mine.target_gram.get(), other.target_gram.get());
        move_mean(mine.feature_mean.get(), s, part);
        move_mean(mine.target_mean.get(), t, part);
        mine.count = n;
        mine.has_float32 = mine.has_float32 || other.has_float32;
    }
    moments_.n_rows += other.n_rows;
    ++version_;
}

std::unique_ptr<Statistics> Statistics::copy() const {
    const std::lock_guard lock(mutex_);
    Moments copied = moments_;
    copied.gram = copy_of_gram(moments_);
    copied.cross = copy_of(moments_.cross, moments_.cross_size());
    copied.target_gram = copy_of(moments_.target_gram, moments_.target_gram_size());
    copied.feature_mean = copy_of(moments_.feature_mean, moments_.n_features);
    copied.target_mean = copy_of(moments_.target_mean, moments_.n_targets);
    return std::make_unique<Statistics>(std::move(copied));
}

std::unique_ptr<Statistics> Statistics::with_targets(const std::int64_t* columns, Size n_columns,
                                                     Size n_targets) const {
    const std::lock_guard lock(mutex_);
    const Size k = moments_.n_targets;
    refuse_unless(n_columns == k, "There must be a column for every target.");
    refuse_unless(n_targets < bound, "Statistics have less than 2^31 targets.");
    for (Size i = 0; i < k; ++i)
        refuse_unless(columns[i] >= (i > 0 ? columns[i - 1] + 1 : 0) && columns[i] < n_targets,
                      "The columns must increase and lie among the targets.");
    Moments wider(moments_);
    wider.n_targets = n_targets;
    wider.gram = copy_of_gram(moments_);
    wider.feature_mean = copy_of(moments_.feature_mean, moments_.n_features);
    wider.cross = zeros<double>(wider.cross_size());
    wider.target_gram = zeros<double>(wider.target_gram_size());
    wider.target_mean = zeros<double>(n_targets);
    for (Size j = 0; j < k; ++j) {
        wider.target_mean.get()[columns[j]] = moments_.target_mean.get()[j];
        for (Size i = 0; i < moments_.n_features; ++i)
            wider.cross.get()[i * n_targets + columns[j]] = moments_.cross.get()[i * k + j];
        for (Size i = 0; i < k; ++i)
            wider.target_gram.get()[columns[i] * n_targets + columns[j]] =
                moments_.target_gram.get()[i * k + j];
    }
    return std::make_unique<Statistics>(std::move(wider));
}

Moments Statistics::moments() const {
    const std::lock_guard lock(mutex_);
    return moments_;
}

std::uint64_t Statistics::version() const {
    const std::lock_guard lock(mutex_);
    return version_;
}

std::vector<double> Statistics::copied(Numbers Moments::* array, Size size) const {
    const std::lock_guard lock(mutex_);
    const double* numbers = (moments_.*array).get();
    return {numbers, numbers + size};
}

// ---------------------------------------------------------------- many batches

Accumulator::Accumulator(Size n_features, Size n_targets, Size expected_rows, bool in_float32,
                         bool float32_gram)
    : moments_(std::make_unique<Moments>(n_features, n_targets, float32_gram)) {
    refuse_unless(expected_rows >= 1, "At least one row must be expected.");
    pending_ =
        std::make_unique<PendingRows>(*moments_, std::max(expected_rows, Size{2}), in_float32);
}

Accumulator::~Accumulator() = default;

template <class T> void Accumulator::add(const Batch<T>& batch, const Blas& blas) {
    const std::lock_guard lock(mutex_);
    refuse_unless(moments_ != nullptr, "This accumulator has handed over its statistics.");
    const Measured measured = kitchenette::measured(batch, *moments_);
    if (measured.count > 0) {
        const Change change = Change::adding(moments_->count, measured.count);
        const DifferenceOfMeans row(measured, change.between);
        // Changing the precision allocates memory; if that fails, the products are incomplete.
        std::unique_ptr<Moments> moments = std::move(moments_);
        pending_->add(batch, measured, row.features, row.targets, row.in_float32, 1.0, blas,
                      *moments);
        moments_ = std::move(moments);
        move(*moments_, measured, change.part);
        moments_->count += measured.count;
        moments_->has_float32 = moments_->has_float32 || sizeof(T) == sizeof(float);
    }
    moments_->n_rows += batch.n_rows;
}

std::unique_ptr<Statistics> Accumulator::finish(const Blas& blas) {
    const std::lock_guard lock(mutex_);
    refuse_unless(moments_ != nullptr, "This accumulator has handed over its statistics.");
    pending_->multiply(*moments_, 1.0, blas);
    auto statistics = std::make_unique<Statistics>(std::move(*moments_));
    moments_.reset();
    pending_.reset();
    return statistics;
}

#define KITCHENETTE_INSTANTIATE(T)                                           \
    template NumbersOf<T> zeros<T>(Size);                                    \
    template void Statistics::update<T>(const Batch<T>&, bool, const Blas&); \
    template void Accumulator::add<T>(const Batch<T>&, const Blas&);
KITCHENETTE_INSTANTIATE(float)
KITCHENETTE_INSTANTIATE(double)

}  // namespace kitchenette
