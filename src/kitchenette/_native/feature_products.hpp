// Products of features with weights and with factors of rows, and the gradients of losses.
//
// None of them ever stores the features of more rows than fit a block.
#pragma once

#include <vector>

#include "losses.hpp"
#include "operator.hpp"

namespace kitchenette {

// Consecutive parts of an operator, as many at a time as have `least` features together.
class Chunks {
  public:
    template <class T> Chunks(const Operator<T>& features, Size least) {
        for (Size part = 1; part <= features.n_parts(); ++part) {
            const Size end = features.first_feature(part), width = end - first_features_.back();
            if (width < least && part < features.n_parts()) continue;
            widest_ = std::max(widest_, width);
            first_parts_.push_back(part);
            first_features_.push_back(end);
        }
    }
    Size count() const { return static_cast<Size>(first_parts_.size()) - 1; }
    // Of chunk number count(): those of the end.
    Size first_part(Size chunk) const { return first_parts_[static_cast<std::size_t>(chunk)]; }
    Size first_feature(Size chunk) const {
        return first_features_[static_cast<std::size_t>(chunk)];
    }
    Size widest() const { return widest_; }

  private:
    Size widest_ = 0;
    std::vector<Size> first_parts_{0}, first_features_{0};
};

// Weights of the features of an operator, in the order in which they are multiplied.
//
// Features are multiplied in T, at most `stretch` at a time; these sums are added in double
// precision, first those of a chunk of parts and then those of the chunks, always in the same
// order.
template <class T> class PackedWeights {
  public:
    // weights: (n_features, n_targets), stored by rows.
    template <class Weight>
    PackedWeights(const Operator<T>& features, const Weight* weights, Size n_targets);
    Size n_targets() const { return n_targets_; }
    const Chunks& chunks() const { return chunks_; }

    // sums += features of a chunk times their weights; z holds the features of the chunk alone.
    void add_products(const VectorCode<T>& code, Size chunk, const T* z, Size z_stride, Size n_rows,
                      double* sums) const;

    // out = features times weights + intercept with all threads, for the features z of a block;
    // sums is scratch memory for a number per chunk per row and target.
    void multiply(const VectorCode<T>& code, const T* z, Size z_stride, Size n_rows,
                  const double* intercept, double* out, Size stride, double* sums) const;

  private:
    static constexpr Size stretch = 4096 / static_cast<Size>(sizeof(T));
    Size n_targets_;
    Chunks chunks_;
    std::vector<T> weights_;  // of stretch after stretch, by targets
};

// features(x) @ weights + intercept.
template <class T> class Linear {
  public:
    // weights: (n_features, n_targets), stored by rows.
    template <class Weight> Linear(SharedOperator<T> features, const Weight* weights,
                                   const double* intercept, Size n_targets);
    const Operator<T>& features() const { return *features_; }
    Size n_targets() const { return weights_.n_targets(); }

    // out: (n_rows, n_targets), rows `stride` apart. False if a number is not finite.
    bool run(const Rows<T>& rows, double* out, Size stride) const;

  private:
    Pace unit_pace(const VectorCode<T>& code) const;
    bool has_resident_weights() const;
    bool run_by_units(const VectorCode<T>& code, const Rows<T>& rows, const Pace& pace, double* out,
                      Size stride) const;
    bool run_by_blocks(const VectorCode<T>& code, const Rows<T>& rows, double* out,
                       Size stride) const;

    SharedOperator<T> features_;
    PackedWeights<T> weights_;
    std::vector<double> intercept_;
};

// out += features(x)' factors, in double precision; factors: (n_rows, n_targets) and out:
// (n_features, n_targets), stored by rows. False if a number is not finite. Sums run over fixed
// blocks of rows, counted from the first row of the call.
template <class T> bool add_transposed(const Operator<T>& features, const Rows<T>& rows,
                                       const T* factors, Size n_targets, double* out);

// The gradient of the sum over the rows of weight times loss, for the linear function
// f = features(x) @ weights + intercept, computing the features of every row once.
//
// Writes f to outputs, of shape (n_rows, n_targets). Adds the derivatives with respect to the
// weights to out, of shape (n_features, n_targets), and those with respect to the intercept to
// sums. Returns the sum of weighted losses, or NaN if a number is not finite.
template <class T, class Weight>
double add_gradient(const Operator<T>& features, const Rows<T>& rows, const Weight* weights,
                    const double* intercept, Size n_targets, const Loss& loss,
                    const Targets& targets, double* outputs, double* out, double* sums);

}  // namespace kitchenette
