// Bindings of the statistics for least squares.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "bindings.hpp"
#include "statistics.hpp"

using namespace nanobind::literals;

namespace kitchenette {
namespace {

// ---------------------------------------------------------------- the BLAS

// A function that SciPy's cython_blas exports. Its signature is the name of the capsule; it begins
// with two letters and some sizes, which must be 32-bit numbers, followed by a pointer to T.
template <class T, class Function>
void read_blas_function(const nb::capsule& capsule, int n_sizes, Function& function) {
    std::string expected = "void (char *, char *, ";
    for (int i = 0; i < n_sizes; ++i) expected += "int *, ";
    const std::string name = capsule.name() ? capsule.name() : "";
    const std::string number = sizeof(T) == sizeof(float) ? "_s *" : "_d *";
    const std::size_t end = name.find(',', std::min(expected.size(), name.size()));
    require(name.starts_with(expected) && end != std::string::npos &&
                name.substr(0, end).ends_with(number),
            "this is not the function of the BLAS that is expected");
    function = reinterpret_cast<Function>(capsule.data(capsule.name()));
}

Blas blas_of(const nb::capsule& sgemm, const nb::capsule& ssyrk, const nb::capsule& dgemm,
             const nb::capsule& dsyrk) {
    Blas blas;
    read_blas_function<float>(sgemm, 3, blas.in_single.gemm);
    read_blas_function<float>(ssyrk, 2, blas.in_single.syrk);
    read_blas_function<double>(dgemm, 3, blas.in_double.gemm);
    read_blas_function<double>(dsyrk, 2, blas.in_double.syrk);
    return blas;
}

// ---------------------------------------------------------------- arrays

template <int dimensions> using Array =
    nb::ndarray<double, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;
template <class... Options> using NumPy = nb::ndarray<nb::numpy, Options...>;

// The numbers of a NumPy array, without copying them. The array is released together with the last
// reference.
template <int dimensions> Numbers numbers_of(const Array<dimensions>& array,
                                             std::initializer_list<Size> shape, const char* name) {
    Size i = 0;
    for (const Size length : shape)
        if (static_cast<Size>(array.shape(i++)) != length)
            throw std::invalid_argument(std::string(name) +
                                        " does not have the shape it must have");
    require_aligned(array.data());
    auto* owner = new Array<dimensions>(array);
    return {array.data(), [owner](double*) {
                const nb::gil_scoped_acquire acquire;
                delete owner;
            }};
}

nb::capsule owner_of(const Numbers& numbers) {
    return nb::capsule(new Numbers(numbers),
                       [](void* p) noexcept { delete static_cast<Numbers*>(p); });
}

auto read_only(const Numbers& numbers, std::initializer_list<std::size_t> shape) {
    return NumPy<const double>(numbers.get(), shape, owner_of(numbers));
}

auto copy_of(const Statistics& self, Numbers Moments::* array,
             std::initializer_list<std::size_t> shape) {
    std::size_t size = 1;
    for (const std::size_t length : shape) size *= length;
    const Numbers copied = zeros(static_cast<Size>(size));
    const auto numbers = [&] {
        const nb::gil_scoped_release release;
        return self.copied(array, static_cast<Size>(size));
    }();
    std::copy(numbers.begin(), numbers.end(), copied.get());
    return NumPy<double>(copied.get(), shape, owner_of(copied));
}

Moments moments_of(const Statistics& self) {
    const nb::gil_scoped_release release;
    return self.moments();
}

std::size_t size_of(Size size) {
    return static_cast<std::size_t>(size);
}

// ---------------------------------------------------------------- batches

template <class T> using Targets = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T> Batch<T> batch_of(const Matrix<const T>& Z, const Targets<double>& Y,
                                     const OptionalVector<double>& weights, Size n_features,
                                     Size n_targets) {
    const Rows<T> rows = rows_of<T>(Z);
    require(rows.n_columns == n_features, "Z must have a column for every feature");
    require(static_cast<Size>(Y.shape(1)) == n_targets, "Y must have a column for every target");
    require(static_cast<Size>(Y.shape(0)) == rows.n_rows, "Y must have as many rows as Z");
    require(!weights || length_of(weights) == rows.n_rows, "there must be a weight for every row");
    require_aligned(Y.data());
    if (weights) require_aligned(weights->data());
    return {rows.values, rows.stride, Y.data(), pointer_of(weights), rows.n_rows};
}

// An accumulator with the sizes that batches must have.
struct SizedAccumulator {
    SizedAccumulator(Size features, Size targets, Size expected_rows, bool single)
        : n_features(features),
          n_targets(targets),
          accumulator(features, targets, expected_rows, single) {}
    Size n_features, n_targets;
    Accumulator accumulator;
};

template <class T, class Statistics_, class Accumulator_>
void bind_batches(Statistics_& statistics, Accumulator_& accumulator) {
    statistics.def(
        "update",
        [](Statistics& self, const Matrix<const T>& Z, const Targets<double>& Y,
           const OptionalVector<double>& weights, bool remove, const Blas& blas) {
            const Batch<T> batch = batch_of(Z, Y, weights, self.n_features(), self.n_targets());
            const nb::gil_scoped_release release;
            self.update(batch, remove, blas);
        },
        "Z"_a.noconvert(), "Y"_a.noconvert(), "weights"_a.noconvert() = nb::none(), nb::kw_only(),
        "remove"_a = false, "blas"_a);
    accumulator.def(
        "add",
        [](SizedAccumulator& self, const Matrix<const T>& Z, const Targets<double>& Y,
           const OptionalVector<double>& weights, const Blas& blas) {
            const Batch<T> batch = batch_of(Z, Y, weights, self.n_features, self.n_targets);
            const nb::gil_scoped_release release;
            self.accumulator.add(batch, blas);
        },
        "Z"_a.noconvert(), "Y"_a.noconvert(), "weights"_a.noconvert() = nb::none(), nb::kw_only(),
        "blas"_a);
}

std::unique_ptr<Statistics> adopt(const Array<1>& gram, const Array<2>& cross,
                                  const Array<2>& target_gram, const Array<1>& feature_mean,
                                  const Array<1>& target_mean, double count, Size n_rows,
                                  bool single) {
    const Size D = static_cast<Size>(cross.shape(0)), k = static_cast<Size>(cross.shape(1));
    Moments moments = Moments::without_arrays(D, k);
    require(n_rows >= 0, "n_rows must not be negative");
    require(count >= 0 && std::isfinite(count), "count must be finite and not negative");
    moments.gram = numbers_of<1>(gram, {moments.gram_size()}, "gram");
    moments.cross = numbers_of<2>(cross, {D, k}, "cross");
    moments.target_gram = numbers_of<2>(target_gram, {k, k}, "target_gram");
    moments.feature_mean = numbers_of<1>(feature_mean, {D}, "feature_mean");
    moments.target_mean = numbers_of<1>(target_mean, {k}, "target_mean");
    moments.count = count;
    moments.n_rows = n_rows;
    moments.single = single;
    return std::make_unique<Statistics>(std::move(moments));
}

template <class Statistics_> void bind_numbers(Statistics_& statistics) {
    statistics.def_prop_ro("n_features", &Statistics::n_features)
        .def_prop_ro("n_targets", &Statistics::n_targets)
        .def_prop_ro("n_rows", [](const Statistics& self) { return moments_of(self).n_rows; })
        .def_prop_ro("count", [](const Statistics& self) { return moments_of(self).count; })
        .def_prop_ro("single", [](const Statistics& self) { return moments_of(self).single; })
        .def_prop_ro("version", [](const Statistics& self) {
            const nb::gil_scoped_release release;
            return self.version();
        });
    // The arrays carry their own owners.
    constexpr auto policy = nb::rv_policy::automatic;
    statistics
        .def_prop_ro(
            "gram",
            [](const Statistics& self) {
                const Moments moments = moments_of(self);
                return read_only(moments.gram, {size_of(moments.gram_size())});
            },
            policy)
        .def_prop_ro(
            "cross",
            [](const Statistics& self) {
                return read_only(moments_of(self).cross,
                                 {size_of(self.n_features()), size_of(self.n_targets())});
            },
            policy)
        .def_prop_ro(
            "target_gram",
            [](const Statistics& self) {
                const std::size_t k = size_of(self.n_targets());
                return copy_of(self, &Moments::target_gram, {k, k});
            },
            policy)
        .def_prop_ro(
            "feature_mean",
            [](const Statistics& self) {
                return copy_of(self, &Moments::feature_mean, {size_of(self.n_features())});
            },
            policy)
        .def_prop_ro(
            "target_mean",
            [](const Statistics& self) {
                return copy_of(self, &Moments::target_mean, {size_of(self.n_targets())});
            },
            policy);
}

}  // namespace

void bind_statistics(nb::module_& m) {
    m.def("products_call_blas", &products_call_blas);
    nb::class_<Blas>(m, "Blas").def(
        "__init__",
        [](Blas* self, const nb::capsule& sgemm, const nb::capsule& ssyrk, const nb::capsule& dgemm,
           const nb::capsule& dsyrk) { new (self) Blas(blas_of(sgemm, ssyrk, dgemm, dsyrk)); },
        "sgemm"_a, "ssyrk"_a, "dgemm"_a, "dsyrk"_a);

    nb::class_<Statistics> statistics(m, "Statistics");
    statistics.def(nb::init<Size, Size>(), "n_features"_a, "n_targets"_a)
        .def_static("adopt", &adopt, nb::kw_only(), "gram"_a.noconvert(), "cross"_a.noconvert(),
                    "target_gram"_a.noconvert(), "feature_mean"_a.noconvert(),
                    "target_mean"_a.noconvert(), "count"_a, "n_rows"_a, "single"_a)
        .def(
            "merge",
            [](Statistics& self, const Statistics& other) {
                const nb::gil_scoped_release release;
                self.merge(other);
            },
            "other"_a)
        .def("copy",
             [](const Statistics& self) {
                 const nb::gil_scoped_release release;
                 return self.copy();
             })
        .def(
            "with_targets",
            [](const Statistics& self, const Vector<const std::int64_t>& columns, Size n_targets) {
                require_aligned(columns.data());
                const nb::gil_scoped_release release;
                return self.with_targets(columns.data(), static_cast<Size>(columns.size()),
                                         n_targets);
            },
            "columns"_a.noconvert(), "n_targets"_a);
    bind_numbers(statistics);

    nb::class_<SizedAccumulator> accumulator(m, "Accumulator");
    accumulator
        .def(nb::init<Size, Size, Size, bool>(), "n_features"_a, "n_targets"_a, "expected_rows"_a,
             "single"_a)
        .def(
            "finish",
            [](SizedAccumulator& self, const Blas& blas) {
                const nb::gil_scoped_release release;
                return self.accumulator.finish(blas);
            },
            nb::kw_only(), "blas"_a);
    bind_batches<float>(statistics, accumulator);
    bind_batches<double>(statistics, accumulator);
}

}  // namespace kitchenette
