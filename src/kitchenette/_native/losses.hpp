// Losses of the outputs of a linear function, and their derivatives.
//
// A loss compares the outputs f of a row, one per target, with its target: numbers y, one per
// output, or the label of a class. Each function below returns the loss of one row and writes its
// derivatives with respect to the outputs to `derivatives`.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "variants.hpp"

namespace kitchenette {

enum class LossKind { squared, huber, quantile, logistic, squared_hinge };

struct Loss {
    LossKind kind = LossKind::squared;
    double threshold = 1;  // huber: residuals beyond it count linearly
    double level = 0.5;    // quantile: the share of targets below the output
    double width = 0;      // quantile: residuals within it count quadratically
    bool takes_labels() const {
        return kind == LossKind::logistic || kind == LossKind::squared_hinge;
    }
};

// The targets of rows, of which the loss reads either `values`, of shape (n_rows, n_targets), or
// `labels`, and the weights of the rows, which may be null. A row of weight zero is never read.
struct Targets {
    const double* values = nullptr;
    const std::int32_t* labels = nullptr;
    const double* weights = nullptr;
};

// The targets of the rows from `row` on.
inline Targets targets_from(const Targets& targets, Size row, Size n_targets) {
    Targets some = targets;
    if (some.values) some.values += row * n_targets;
    if (some.labels) some.labels += row;
    if (some.weights) some.weights += row;
    return some;
}

// ---------------------------------------------------------------- losses of numbers

// |f - y|^2 / 2.
inline double squared_loss(const double* f, const double* y, Size n, double* derivatives) {
    double loss = 0;
    for (Size c = 0; c < n; ++c) {
        derivatives[c] = f[c] - y[c];
        loss += 0.5 * derivatives[c] * derivatives[c];
    }
    return loss;
}

// r^2 / 2 for residuals r of at most the threshold, and linear beyond.
inline double huber_loss(const double* f, const double* y, Size n, double threshold,
                         double* derivatives) {
    double loss = 0;
    for (Size c = 0; c < n; ++c) {
        const double residual = f[c] - y[c], size = std::abs(residual);
        derivatives[c] = std::clamp(residual, -threshold, threshold);
        loss +=
            size <= threshold ? 0.5 * residual * residual : threshold * (size - 0.5 * threshold);
    }
    return loss;
}

// The pinball loss of residuals r = y - f, which is level r for r >= 0 and (level - 1) r for r < 0,
// averaged over r - u for u uniform in [-width, width].
inline double quantile_loss(const double* f, const double* y, Size n, double level, double width,
                            double* derivatives) {
    double loss = 0;
    for (Size c = 0; c < n; ++c) {
        const double residual = y[c] - f[c];
        if (std::abs(residual) < width) {
            derivatives[c] = 0.5 - level - 0.5 * residual / width;
            loss += (level - 0.5) * residual + 0.25 * (residual * residual / width + width);
        } else {
            derivatives[c] = residual > 0 ? -level : residual < 0 ? 1 - level : 0.5 - level;
            loss += std::max(level * residual, (level - 1) * residual);
        }
    }
    return loss;
}

// ---------------------------------------------------------------- losses of classes

// log(1 + exp(-s f)) for a class s of 1 or -1.
inline double binary_logistic_loss(double f, double s, double* slope) {
    const double margin = s * f, small = std::exp(-std::abs(margin));
    *slope = -s * (margin > 0 ? small : 1) / (1 + small);
    return std::max(-margin, 0.0) + std::log1p(small);
}

// log(sum of exp(f)) - f[label]. The largest output is left out of the sums, and the output of the
// label out of its derivative, which keeps all digits of small losses and derivatives.
inline double multinomial_loss(const double* f, Size label, Size n, double* derivatives) {
    const Size top = std::max_element(f, f + n) - f;
    double others = 0, wrong = 0;
    for (Size c = 0; c < n; ++c) {
        derivatives[c] = std::exp(f[c] - f[top]);
        if (c != top) others += derivatives[c];
        if (c != label) wrong += derivatives[c];
    }
    const double total = 1 + others;
    for (Size c = 0; c < n; ++c) derivatives[c] /= total;
    derivatives[label] = -wrong / total;
    return std::log1p(others) + (f[top] - f[label]);
}

// max(0, 1 - s f)^2 / 2 for a class s of 1 or -1.
inline double squared_hinge_loss(double f, double s, double* slope) {
    const double gap = s * f >= 1 ? 0 : 1 - s * f;
    *slope = -s * gap;
    return 0.5 * gap * gap;
}

// The squared hinge losses of each class against all others.
inline double squared_hinge_losses(const double* f, Size label, Size n, double* derivatives) {
    double loss = 0;
    for (Size c = 0; c < n; ++c)
        loss += squared_hinge_loss(f[c], c == label ? 1 : -1, derivatives + c);
    return loss;
}

// ---------------------------------------------------------------- losses of rows

// The loss of row `row` of the targets. A single output distinguishes the classes 0 and 1.
inline double loss_of_row(const Loss& loss, const Targets& targets, Size row, const double* f,
                          Size n, double* derivatives) {
    const double* y = targets.values ? targets.values + row * n : nullptr;
    const Size label = targets.labels ? targets.labels[row] : 0;
    const double sign = label == 1 ? 1 : -1;
    switch (loss.kind) {
        case LossKind::squared:
            return squared_loss(f, y, n, derivatives);
        case LossKind::huber:
            return huber_loss(f, y, n, loss.threshold, derivatives);
        case LossKind::quantile:
            return quantile_loss(f, y, n, loss.level, loss.width, derivatives);
        case LossKind::logistic:
            return n == 1 ? binary_logistic_loss(*f, sign, derivatives)
                          : multinomial_loss(f, label, n, derivatives);
        case LossKind::squared_hinge:
            return n == 1 ? squared_hinge_loss(*f, sign, derivatives)
                          : squared_hinge_losses(f, label, n, derivatives);
    }
    return 0;
}

// Adds the sum over the rows of weight times loss to `total`. Writes weight times the derivatives
// with respect to the outputs to `factors`, both of shape (n_rows, n_targets), and adds their sums
// over the rows to `sums`. Sums run over fixed groups of 16 rows, whatever the number of threads.
template <class T> void add_losses(const Loss& loss, const Targets& targets, const double* outputs,
                                   Size n_rows, Size n_targets, T* factors, double* sums,
                                   double& total);

}  // namespace kitchenette
