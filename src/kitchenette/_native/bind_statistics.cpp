// Bindings of the statistics for least squares.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/variant.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "bindings.hpp"
#include "packed.hpp"
#include "statistics.hpp"

using namespace nanobind::literals;

namespace kitchenette {
namespace {

// ---------------------------------------------------------------- the BLAS

// A function that SciPy's cython_blas or cython_lapack exports. Its signature is the name of the
// capsule; it begins with some letters and some sizes, which must be 32-bit numbers, followed by a
// pointer to T.
template <class T, class Function> void read_blas_function(const nb::capsule& capsule,
                                                           int n_letters, int n_sizes,
                                                           Function& function) {
    std::string expected = "void (";
    for (int i = 0; i < n_letters; ++i) expected += "char *, ";
    for (int i = 0; i < n_sizes; ++i) expected += "int *, ";
    const std::string name = capsule.name() ? capsule.name() : "";
    const std::string number = sizeof(T) == sizeof(float) ? "_s *" : "_d *";
    const std::size_t end = name.find(',', std::min(expected.size(), name.size()));
    require(name.starts_with(expected) && end != std::string::npos &&
                name.substr(0, end).ends_with(number),
            "this is not the function of the BLAS that is expected");
    function = reinterpret_cast<Function>(capsule.data(capsule.name()));
}

template <class T> BlasFunctions<T> functions_of(const nb::capsule& gemm, const nb::capsule& syrk,
                                                 const nb::capsule& trsm,
                                                 const nb::capsule& potrf) {
    BlasFunctions<T> functions;
    read_blas_function<T>(gemm, 2, 3, functions.gemm);
    read_blas_function<T>(syrk, 2, 2, functions.syrk);
    read_blas_function<T>(trsm, 4, 2, functions.trsm);
    read_blas_function<T>(potrf, 1, 1, functions.potrf);
    return functions;
}

// ---------------------------------------------------------------- arrays

template <int dimensions, class T = double> using Array =
    nb::ndarray<T, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;
using PackedArray = std::variant<Array<1>, Array<1, float>>;
template <class... Options> using NumPy = nb::ndarray<nb::numpy, Options...>;

// The numbers of a NumPy array, without copying them. The array is released together with the last
// reference.
template <class AnyArray, class T = typename AnyArray::Scalar>
NumbersOf<T> numbers_of(const AnyArray& array, std::initializer_list<Size> shape,
                        const char* name) {
    Size i = 0;
    for (const Size length : shape)
        if (static_cast<Size>(array.shape(i++)) != length)
            throw std::invalid_argument(std::string(name) +
                                        " does not have the shape it must have");
    require_aligned(array.data());
    auto* owner = new AnyArray(array);
    return {array.data(), [owner](T*) {
                const nb::gil_scoped_acquire acquire;
                delete owner;
            }};
}

template <class T> nb::capsule owner_of(const NumbersOf<T>& numbers) {
    return nb::capsule(new NumbersOf<T>(numbers),
                       [](void* p) noexcept { delete static_cast<NumbersOf<T>*>(p); });
}

template <class T>
auto read_only(const NumbersOf<T>& numbers, std::initializer_list<std::size_t> shape) {
    return NumPy<const T>(numbers.get(), shape, owner_of(numbers));
}

auto copy_of(const Statistics& self, Numbers Moments::* array,
             std::initializer_list<std::size_t> shape) {
    std::size_t size = 1;
    for (const std::size_t length : shape) size *= length;
    const Numbers copied = zeros<double>(static_cast<Size>(size));
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
    SizedAccumulator(Size features, Size targets, Size expected_rows, bool in_float32,
                     bool float32_gram)
        : n_features(features),
          n_targets(targets),
          accumulator(features, targets, expected_rows, in_float32, float32_gram) {}
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

std::unique_ptr<Statistics> adopt(const PackedArray& gram, const Array<2>& cross,
                                  const Array<2>& target_gram, const Array<1>& feature_mean,
                                  const Array<1>& target_mean, double count, Size n_rows,
                                  bool has_float32) {
    const Size D = static_cast<Size>(cross.shape(0)), k = static_cast<Size>(cross.shape(1));
    Moments moments = Moments::without_arrays(D, k);
    require(n_rows >= 0, "n_rows must not be negative");
    require(count >= 0 && std::isfinite(count), "count must be finite and not negative");
    moments.gram = std::visit(
        [&](const auto& array) -> Gram { return numbers_of(array, {moments.gram_size()}, "gram"); },
        gram);
    moments.cross = numbers_of(cross, {D, k}, "cross");
    moments.target_gram = numbers_of(target_gram, {k, k}, "target_gram");
    moments.feature_mean = numbers_of(feature_mean, {D}, "feature_mean");
    moments.target_mean = numbers_of(target_mean, {k}, "target_mean");
    moments.count = count;
    moments.n_rows = n_rows;
    moments.has_float32 = has_float32;
    return std::make_unique<Statistics>(std::move(moments));
}

template <class Statistics_> void bind_numbers(Statistics_& statistics) {
    statistics.def_prop_ro("n_features", &Statistics::n_features)
        .def_prop_ro("n_targets", &Statistics::n_targets)
        .def_prop_ro("n_rows", [](const Statistics& self) { return moments_of(self).n_rows; })
        .def_prop_ro("count", [](const Statistics& self) { return moments_of(self).count; })
        .def_prop_ro("has_float32",
                     [](const Statistics& self) { return moments_of(self).has_float32; })
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
                return std::visit(
                    [&](const auto& gram) {
                        return nb::cast(read_only(gram, {size_of(moments.gram_size())}));
                    },
                    moments.gram);
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

// ---------------------------------------------------------------- packed matrices

template <class T> using Columns = nb::ndarray<T, nb::ndim<2>, nb::f_contig, nb::device::cpu>;

template <class Packed> void check_packed(const Packed& packed, Size order) {
    require(order >= 1 && order < Size{1} << 31, "the order must be from 1 to 2^31 - 1");
    require(static_cast<Size>(packed.size()) == order * (order + 1) / 2,
            "a packed matrix must have n (n + 1) / 2 numbers");
    require_aligned(packed.data());
}

template <class T> void bind_packed(nb::module_& m) {
    m.def(
        "packed_cholesky",
        [](const Array<1, T>& packed, Size order, const Blas& blas) {
            check_packed(packed, order);
            const nb::gil_scoped_release release;
            return cholesky(packed.data(), order, blas);
        },
        "packed"_a.noconvert(), "order"_a, nb::kw_only(), "blas"_a);
    m.def(
        "packed_substitute",
        [](const Array<1, const T>& factor, Size order, const Columns<T>& b, bool transposed,
           const Blas& blas) {
            check_packed(factor, order);
            require(static_cast<Size>(b.shape(0)) == order,
                    "b must have as many rows as the factor");
            require(b.shape(1) < std::size_t{1} << 31, "b must have less than 2^31 columns");
            require_aligned(b.data());
            const nb::gil_scoped_release release;
            substitute(factor.data(), order, b.data(), static_cast<Size>(b.shape(1)), transposed,
                       blas);
        },
        "factor"_a.noconvert(), "order"_a, "b"_a.noconvert(), nb::kw_only(), "transposed"_a,
        "blas"_a);
    m.def(
        "packed_inverse_trace",
        [](const Array<1, const T>& factor, Size order, const Blas& blas) {
            check_packed(factor, order);
            const nb::gil_scoped_release release;
            return inverse_trace(factor.data(), order, blas);
        },
        "factor"_a.noconvert(), "order"_a, nb::kw_only(), "blas"_a);
}

}  // namespace

void bind_statistics(nb::module_& m) {
    m.def("products_call_blas", &products_call_blas);
    nb::class_<Blas>(m, "Blas").def(
        "__init__",
        [](Blas* self, const nb::capsule& sgemm, const nb::capsule& ssyrk, const nb::capsule& strsm,
           const nb::capsule& spotrf, const nb::capsule& dgemm, const nb::capsule& dsyrk,
           const nb::capsule& dtrsm, const nb::capsule& dpotrf) {
            new (self) Blas{functions_of<float>(sgemm, ssyrk, strsm, spotrf),
                            functions_of<double>(dgemm, dsyrk, dtrsm, dpotrf)};
        },
        nb::kw_only(), "sgemm"_a, "ssyrk"_a, "strsm"_a, "spotrf"_a, "dgemm"_a, "dsyrk"_a, "dtrsm"_a,
        "dpotrf"_a);
    bind_packed<float>(m);
    bind_packed<double>(m);

    nb::class_<Statistics> statistics(m, "Statistics");
    statistics
        .def(nb::init<Size, Size, bool>(), "n_features"_a, "n_targets"_a, nb::kw_only(),
             "float32_gram"_a = false)
        .def_static("adopt", &adopt, nb::kw_only(), "gram"_a.noconvert(), "cross"_a.noconvert(),
                    "target_gram"_a.noconvert(), "feature_mean"_a.noconvert(),
                    "target_mean"_a.noconvert(), "count"_a, "n_rows"_a, "has_float32"_a)
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
        .def(nb::init<Size, Size, Size, bool, bool>(), "n_features"_a, "n_targets"_a,
             "expected_rows"_a, nb::kw_only(), "in_float32"_a, "float32_gram"_a = false)
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
