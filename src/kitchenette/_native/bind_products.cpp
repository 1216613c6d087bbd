// Python bindings of products with features, and of losses and their gradients.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include <cmath>
#include <limits>
#include <string>

#include "blocks.hpp"
#include "feature_products.hpp"
#include "operator_bindings.hpp"

using namespace nanobind::literals;

namespace kitchenette {
namespace {

// A matrix of doubles in the order of memory that is written to.
using Result = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T> struct LinearHandle {
    std::shared_ptr<const Linear<T>> shared;
};

template <class T> void bind_linear_class(nb::module_& m, const char* name) {
    nb::class_<LinearHandle<T>>(m, name)
        .def_prop_ro(
            "n_columns",
            [](const LinearHandle<T>& self) { return self.shared->features().n_columns(); })
        .def_prop_ro("n_targets",
                     [](const LinearHandle<T>& self) { return self.shared->n_targets(); })
        .def(
            "write",
            [](const LinearHandle<T>& self, const AnyRows<T>& x, const Matrix<double>& out) {
                const Linear<T>& linear = *self.shared;
                const Rows<T> rows = rows_for(linear.features(), x);
                require_output(out, rows.n_rows, linear.n_targets());
                nb::gil_scoped_release release;
                return linear.run(rows, out.data(), out.stride(0));
            },
            "x"_a.noconvert(), "out"_a.noconvert());
}

// The number of targets of a linear function with these weights and intercept.
template <class Weight> Size n_targets_of(Size n_features, const Table<Weight>& weights,
                                          const Vector<const double>& intercept) {
    const Size n_targets = static_cast<Size>(intercept.size());
    require(n_targets >= 1, "there must be a target");
    require(has_shape(weights, n_features, n_targets),
            "weights must have a row per feature and a column per target");
    require_aligned(weights.data());
    require_aligned(intercept.data());
    return n_targets;
}

template <class T, class Weight> void bind_linear(nb::module_& m) {
    m.def(
        "linear",
        [](const OperatorHandle<T>& features, const Table<Weight>& weights,
           const Vector<const double>& intercept) {
            const Size n_targets = n_targets_of(features.shared->n_features(), weights, intercept);
            return LinearHandle<T>{std::make_shared<Linear<T>>(features.shared, weights.data(),
                                                               intercept.data(), n_targets)};
        },
        "operator"_a, "weights"_a.noconvert(), "intercept"_a.noconvert());
}

template <class T> void bind_transposed(nb::module_& m) {
    m.def(
        "transposed",
        [](const OperatorHandle<T>& features, const AnyRows<T>& x, const Table<T>& factors,
           const Result& out) {
            const Rows<T> rows = rows_for(*features.shared, x);
            const Size n_targets = static_cast<Size>(factors.shape(1));
            require(static_cast<Size>(factors.shape(0)) == rows.n_rows,
                    "there must be a row of factors for every row of x");
            require(has_shape(out, features.shared->n_features(), n_targets),
                    "out must have a row per feature and a column per factor");
            require_aligned(factors.data());
            require_aligned(out.data());
            nb::gil_scoped_release release;
            return add_transposed<T>(*features.shared, rows, factors.data(), n_targets, out.data());
        },
        "operator"_a, "x"_a.noconvert(), "factors"_a.noconvert(), "out"_a.noconvert());
}

// ---------------------------------------------------------------- losses

LossKind loss_named(const std::string& name) {
    if (name == "squared") return LossKind::squared;
    if (name == "huber") return LossKind::huber;
    if (name == "quantile") return LossKind::quantile;
    if (name == "logistic") return LossKind::logistic;
    if (name == "squared_hinge") return LossKind::squared_hinge;
    throw std::invalid_argument("unknown loss '" + name + "'");
}

Loss make_loss(const std::string& name, double threshold, double level, double width) {
    require(threshold > 0 && std::isfinite(threshold), "the threshold must be a positive number");
    require(level > 0 && level < 1, "the level must be between 0 and 1");
    require(width >= 0 && std::isfinite(width), "the width must be a number of at least zero");
    return {loss_named(name), threshold, level, width};
}

// Numbers of shape (n_rows, n_targets), or labels of classes, one per row.
using AnyTargets = std::variant<Table<double>, Vector<const std::int32_t>>;

void require_labels(const Vector<const std::int32_t>& labels, Size n_rows, Size n_targets) {
    require_aligned(labels.data());
    require(static_cast<Size>(labels.size()) == n_rows, "there must be a label for every row");
    // A single output distinguishes two classes.
    require(all_below(labels.data(), labels.size(), std::max(n_targets, Size{2})),
            "a label is outside the classes: there must be an output for every class, or a single "
            "one for the classes 0 and 1");
}

void require_values(const Table<double>& values, Size n_rows, Size n_targets) {
    require_aligned(values.data());
    require(has_shape(values, n_rows, n_targets),
            "targets must have a row per row and a column per output");
}

Targets targets_of(const Loss& loss, const AnyTargets& targets,
                   const OptionalVector<double>& sample_weight, Size n_rows, Size n_targets) {
    Targets result;
    if (loss.takes_labels()) {
        const auto* labels = std::get_if<Vector<const std::int32_t>>(&targets);
        require(labels != nullptr, "this loss takes labels of type int32, one per row");
        require_labels(*labels, n_rows, n_targets);
        result.labels = labels->data();
    } else {
        const auto* values = std::get_if<Table<double>>(&targets);
        require(values != nullptr, "this loss takes a matrix of targets of type float64");
        require_values(*values, n_rows, n_targets);
        result.values = values->data();
    }
    require(!sample_weight || length_of(sample_weight) == n_rows,
            "there must be a sample weight for every row");
    require_aligned(pointer_of(sample_weight));
    result.weights = pointer_of(sample_weight);
    return result;
}

void require_sums(const Vector<double>& sums, Size n_targets) {
    require(static_cast<Size>(sums.size()) == n_targets, "sums must have a number per target");
    require_aligned(sums.data());
}

void bind_losses(nb::module_& m) {
    nb::class_<Loss>(m, "Loss")
        .def(
            "__init__",
            [](Loss* self, const std::string& name, double threshold, double level, double width) {
                new (self) Loss(make_loss(name, threshold, level, width));
            },
            "name"_a, nb::kw_only(), "threshold"_a = 1.0, "level"_a = 0.5, "width"_a = 0.0)
        .def_prop_ro("takes_labels", &Loss::takes_labels)
        .def(
            "evaluate",
            [](const Loss& self, const Table<double>& outputs, const AnyTargets& targets,
               const OptionalVector<double>& sample_weight, const Result& factors,
               const Vector<double>& sums) {
                const Size n_rows = static_cast<Size>(outputs.shape(0));
                const Size n_targets = static_cast<Size>(outputs.shape(1));
                require(n_targets >= 1, "there must be an output");
                const Targets all = targets_of(self, targets, sample_weight, n_rows, n_targets);
                require(has_shape(factors, n_rows, n_targets),
                        "factors must have the shape of outputs");
                require_aligned(outputs.data());
                require_aligned(factors.data());
                require_sums(sums, n_targets);
                nb::gil_scoped_release release;
                double total = 0;
                add_losses(self, all, outputs.data(), n_rows, n_targets, factors.data(),
                           sums.data(), total);
                const bool fine = std::isfinite(total) && are_finite(sums.data(), n_targets) &&
                                  are_finite(outputs.data(), n_rows * n_targets);
                return fine ? total : std::numeric_limits<double>::quiet_NaN();
            },
            "outputs"_a.noconvert(), "targets"_a.noconvert(), "sample_weight"_a.noconvert().none(),
            "factors"_a.noconvert(), "sums"_a.noconvert());
}

// ---------------------------------------------------------------- gradients

template <class T, class Weight> void bind_gradient(nb::module_& m) {
    m.def(
        "gradient",
        [](const OperatorHandle<T>& features, const AnyRows<T>& x, const Table<Weight>& weights,
           const Vector<const double>& intercept, const AnyTargets& targets,
           const OptionalVector<double>& sample_weight, const Loss& loss, const Result& outputs,
           const Result& out, const Vector<double>& sums) {
            const Operator<T>& map = *features.shared;
            const Rows<T> rows = rows_for(map, x);
            const Size n_targets = n_targets_of(map.n_features(), weights, intercept);
            const Targets all = targets_of(loss, targets, sample_weight, rows.n_rows, n_targets);
            require(has_shape(outputs, rows.n_rows, n_targets),
                    "outputs must have a row per row of x and a column per target");
            require(has_shape(out, map.n_features(), n_targets),
                    "out must have a row per feature and a column per target");
            require_aligned(outputs.data());
            require_aligned(out.data());
            require_sums(sums, n_targets);
            nb::gil_scoped_release release;
            return add_gradient<T, Weight>(map, rows, weights.data(), intercept.data(), n_targets,
                                           loss, all, outputs.data(), out.data(), sums.data());
        },
        "operator"_a, "x"_a.noconvert(), "weights"_a.noconvert(), "intercept"_a.noconvert(),
        "targets"_a.noconvert(), "sample_weight"_a.noconvert().none(), "loss"_a,
        "outputs"_a.noconvert(), "out"_a.noconvert(), "sums"_a.noconvert());
}

template <class T, class Weight> void bind_weighted(nb::module_& m) {
    bind_linear<T, Weight>(m);
    bind_gradient<T, Weight>(m);
}

}  // namespace

void bind_products(nb::module_& m) {
    bind_losses(m);
    bind_linear_class<float>(m, "Linear32");
    bind_linear_class<double>(m, "Linear64");
    bind_transposed<float>(m);
    bind_transposed<double>(m);
    bind_weighted<float, float>(m);
    bind_weighted<float, double>(m);
    bind_weighted<double, double>(m);
}

}  // namespace kitchenette
