// The Python module kitchenette._core: checks every shape and index, releases the GIL,
// calls a driver. Nothing is computed here.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "bindings.hpp"
#include "drivers.hpp"
#include "random.hpp"
#include "threads.hpp"

using namespace nanobind::literals;

namespace kitchenette {
namespace {

bool is_power_of_two(Size n) {
    return n >= 1 && (n & (n - 1)) == 0;
}

template <class T> bool has_shape(const Table<T>& table, Size n_rows, Size n_columns) {
    return static_cast<Size>(table.shape(0)) == n_rows &&
           static_cast<Size>(table.shape(1)) == n_columns;
}

// True if all indices are in [0, limit). Branch-free: it runs before every call.
bool all_below(const std::int32_t* indices, std::size_t count, Size limit) {
    bool inside = true;
    for (std::size_t k = 0; k < count; ++k)
        inside &= static_cast<Size>(static_cast<std::uint32_t>(indices[k])) < limit;
    return inside;
}

// ---------------------------------------------------------------- rows and output

// A matrix, or (values, column indices, row starts, number of columns) of a CSR matrix.
template <class T> using AnyRows =
    std::variant<Matrix<const T>, std::tuple<Vector<const T>, Vector<const std::int32_t>,
                                             Vector<const std::int64_t>, Size>>;

using kitchenette::rows_of;  // for matrices; the overloads here would hide it

template <class T> Rows<T> rows_of(const std::tuple<Vector<const T>, Vector<const std::int32_t>,
                                                    Vector<const std::int64_t>, Size>& csr) {
    const auto& [values, indices, starts, n_columns] = csr;
    require(starts.size() >= 1, "the row starts must not be empty");
    require(values.size() == indices.size(), "values and column indices differ in length");
    require_aligned(values.data());
    require_aligned(indices.data());
    require_aligned(starts.data());
    const Size n_rows = static_cast<Size>(starts.size()) - 1;
    const std::int64_t* start = starts.data();
    require(start[0] >= 0 && start[n_rows] <= static_cast<Size>(values.size()),
            "the row starts do not fit the number of values");
    for (Size r = 0; r < n_rows; ++r)
        require(start[r] <= start[r + 1], "the row starts must not decrease");
    require(all_below(indices.data(), indices.size(), n_columns),
            "a column index lies outside the matrix");
    Rows<T> rows;
    rows.n_rows = n_rows;
    rows.n_columns = n_columns;
    rows.values = values.data();
    rows.indices = indices.data();
    rows.starts = start;
    return rows;
}

template <class T> Rows<T> rows_of(const AnyRows<T>& x) {
    return std::visit([](const auto& kind) { return rows_of<T>(kind); }, x);
}

template <class T> Output<T> output_of(const Matrix<T>& out, Size n_rows) {
    require(static_cast<Size>(out.shape(0)) == n_rows, "out must have as many rows as x");
    require(out.shape(1) >= 1, "out must have columns");
    require(has_contiguous_rows(out), "the rows of out must be contiguous");
    require_aligned(out.data());
    Output<T> result;
    result.data = out.data();
    result.stride = out.stride(0);
    result.n_columns = static_cast<Size>(out.shape(1));
    return result;
}

// ---------------------------------------------------------------- tails

Tail tail_named(const std::string& name) {
    if (name == "identity") return Tail::identity;
    if (name == "sincos") return Tail::sincos;
    if (name == "offset") return Tail::offset;
    if (name == "local") return Tail::local;
    if (name == "power") return Tail::power;
    throw std::invalid_argument("unknown tail '" + name + "'");
}

struct TailSpecification {
    Tail kind;
    double amplitude;
    nb::object terms;
    double unpaired_offset;
    double row_weight;
    std::optional<Vector<const std::int32_t>> degrees;
    nb::object slopes;
    nb::object drags;
    Size row_power;

    // The frequencies that n_columns output columns need.
    Size frequencies_for(Size n_columns) const {
        return kind == Tail::sincos ? (n_columns + 1) / 2 : n_columns;
    }

    template <class T>
    static const T* numbers(const nb::object& object, Size length, const char* what) {
        require(!object.is_none(), what);
        const auto array = nb::cast<Vector<const T>>(object, false);
        require(static_cast<Size>(array.size()) >= length, what);
        return array.data();
    }

    // `length`: how many terms will be read.
    template <class T> TailParameters<T> parameters(Size length) const {
        TailParameters<T> tail;
        tail.kind = kind;
        tail.amplitude = static_cast<T>(amplitude);
        tail.unpaired_offset = static_cast<T>(unpaired_offset);
        tail.row_weight = static_cast<T>(row_weight);
        if (kind == Tail::offset || kind == Tail::local || kind == Tail::power)
            tail.terms = numbers<T>(terms, length, "this tail needs a term for every frequency");
        if (kind == Tail::power) {
            require(length_of(degrees) >= length, "this tail needs a degree for every frequency");
            std::int32_t highest = 0;
            for (Size f = 0; f < length; ++f) {
                require(degrees->data()[f] >= 0, "a degree is negative");
                highest = degrees->data()[f] > highest ? degrees->data()[f] : highest;
            }
            tail.degrees = degrees->data();
            tail.slopes = numbers<T>(slopes, highest, "this tail needs a slope per degree");
            tail.drags = numbers<T>(drags, highest, "this tail needs a drag per degree");
            tail.row_power = row_power;
        }
        return tail;
    }
};

// ---------------------------------------------------------------- operations

template <class T> void bind_operations(nb::module_& m) {
    m.def(
        "fwht",
        [](nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu> x) {
            const Size length = static_cast<Size>(x.shape(1));
            require(is_power_of_two(length), "the length must be a power of two");
            require_aligned(x.data());
            const Size outer = static_cast<Size>(x.shape(0)), inner = static_cast<Size>(x.shape(2));
            nb::gil_scoped_release release;
            fwht<T>(x.data(), outer, length, inner);
        },
        "x"_a.noconvert());

    m.def(
        "structured_features",
        [](const AnyRows<T>& x, const Matrix<T>& out, const TailSpecification& tail, Size block,
           const Vector<const std::int8_t>& signs, const OptionalVector<std::int32_t>& permutation,
           const OptionalVector<T>& gaussians, const OptionalVector<T>& cosines,
           const OptionalVector<T>& sines, const Vector<const T>& scales,
           const OptionalVector<T>& column_scales, double constant) {
            const Rows<T> rows = rows_of<T>(x);
            const Output<T> target = output_of(out, rows.n_rows);
            Structured<T> map;
            map.block = block;
            map.n_frequencies = tail.frequencies_for(target.n_columns);
            map.n_padded = static_cast<Size>(signs.size());
            require(is_power_of_two(block), "block must be a power of two");
            map.constant = static_cast<T>(constant);
            require(map.width(rows) <= block, "x has more columns than a block");
            require(map.n_padded % map.tile() == 0 && map.n_padded >= map.n_frequencies,
                    "signs must fill whole tiles for all frequencies");
            require(static_cast<Size>(scales.size()) == map.n_padded,
                    "scales must be as long as signs");
            if (permutation) {
                require(
                    length_of(permutation) == map.n_padded && length_of(gaussians) == map.n_padded,
                    "permutation and gaussians must be as long as signs");
                require(all_below(permutation->data(), permutation->size(), block),
                        "a permuted coordinate lies outside its block");
            } else {
                require(length_of(cosines) == map.n_padded && length_of(sines) == map.n_padded,
                        "cosines and sines must be as long as signs");
            }
            require(!column_scales || length_of(column_scales) == rows.n_columns,
                    "column_scales must have one number per column of x");
            map.signs = signs.data();
            map.permutation = pointer_of(permutation);
            map.gaussians = pointer_of(gaussians);
            map.cosines = pointer_of(cosines);
            map.sines = pointer_of(sines);
            map.scales = scales.data();
            map.column_scales = pointer_of(column_scales);
            map.tail = tail.parameters<T>(map.n_padded);
            nb::gil_scoped_release release;
            return structured<T>(map, rows, target);
        },
        "x"_a.noconvert(), "out"_a.noconvert(), "tail"_a, nb::kw_only(), "block"_a,
        "signs"_a.noconvert(), "permutation"_a.noconvert() = nb::none(),
        "gaussians"_a.noconvert() = nb::none(), "cosines"_a.noconvert() = nb::none(),
        "sines"_a.noconvert() = nb::none(), "scales"_a.noconvert(),
        "column_scales"_a.noconvert() = nb::none(), "constant"_a = 0.0);

    m.def(
        "dense_features",
        [](const AnyRows<T>& x, const Matrix<T>& out, const TailSpecification& tail,
           const nb::ndarray<const T, nb::ndim<3>, nb::c_contig, nb::device::cpu>& panels) {
            const Rows<T> rows = rows_of<T>(x);
            const Output<T> target = output_of(out, rows.n_rows);
            Dense<T> map;
            map.n_frequencies = tail.frequencies_for(target.n_columns);
            map.panels = panels.data();
            require(static_cast<Size>(panels.shape(2)) == panel,
                    "a panel must have 64 frequencies");
            require(static_cast<Size>(panels.shape(1)) == rows.n_columns,
                    "panels must have one row per column of x");
            require(static_cast<Size>(panels.shape(0)) * panel >= map.n_frequencies,
                    "there are fewer frequencies than out has columns for");
            map.tail = tail.parameters<T>(map.n_frequencies);
            nb::gil_scoped_release release;
            return dense<T>(map, rows, target);
        },
        "x"_a.noconvert(), "out"_a.noconvert(), "tail"_a, nb::kw_only(), "panels"_a.noconvert());

    m.def(
        "hadamard_products",
        [](const AnyRows<T>& x, const Matrix<T>& out, Size block, const Table<std::int8_t>& signs,
           const Table<std::int32_t>& indices, const Vector<const std::int32_t>& depths,
           const Vector<const T>& weights, const OptionalVector<T>& column_scales) {
            const Rows<T> rows = rows_of<T>(x);
            const Output<T> target = output_of(out, rows.n_rows);
            HadamardProducts<T> map;
            map.n_features = target.n_columns;
            map.n_padded = static_cast<Size>(weights.size());
            map.n_factors = static_cast<Size>(signs.shape(0));
            map.block = block;
            require(is_power_of_two(block) && block < Size{1} << 31,
                    "block must be a power of two");
            require(static_cast<Size>(signs.shape(1)) == map.tile(), "signs must fill a tile");
            require(rows.n_columns <= map.block, "x has more columns than a block");
            require(map.n_padded % product_group == 0 && map.n_padded >= map.n_features,
                    "weights must fill whole groups for all features");
            require(static_cast<Size>(indices.shape(0)) == map.n_factors &&
                        static_cast<Size>(indices.shape(1)) == map.n_padded,
                    "indices must have a row per factor and a column per weight");
            require(all_below(indices.data(), indices.size(), map.tile() + 1),
                    "a coordinate lies outside its block");
            require(static_cast<Size>(depths.size()) * product_group == map.n_padded,
                    "there must be a depth for every group of features");
            require(all_below(depths.data(), depths.size(), map.n_factors + 1),
                    "a group of features has more factors than there are");
            require(!column_scales || length_of(column_scales) == rows.n_columns,
                    "column_scales must have one number per column of x");
            map.signs = signs.data();
            map.indices = indices.data();
            map.depths = depths.data();
            map.weights = weights.data();
            map.column_scales = pointer_of(column_scales);
            nb::gil_scoped_release release;
            return hadamard_products<T>(map, rows, target);
        },
        "x"_a.noconvert(), "out"_a.noconvert(), nb::kw_only(), "block"_a, "signs"_a.noconvert(),
        "indices"_a.noconvert(), "depths"_a.noconvert(), "weights"_a.noconvert(),
        "column_scales"_a.noconvert() = nb::none());

    m.def(
        "sign_products",
        [](const AnyRows<T>& x, const Matrix<T>& out, const Table<std::uint64_t>& bits,
           const Vector<const std::uint64_t>& used, const Vector<const std::int64_t>& starts,
           const Vector<const T>& weights, const OptionalVector<T>& column_scales) {
            const Rows<T> rows = rows_of<T>(x);
            const Output<T> target = output_of(out, rows.n_rows);
            SignProducts<T> map;
            map.n_features = target.n_columns;
            const Size panels = static_cast<Size>(starts.size()) - 1;
            const Size factors = static_cast<Size>(bits.shape(0));
            require(panels >= 1 && panels * panel >= map.n_features,
                    "there are fewer panels than out has columns for");
            require(static_cast<Size>(weights.size()) == panels * panel,
                    "weights must fill whole panels");
            require(starts.data()[0] == 0 && starts.data()[panels] == factors,
                    "the starts of the panels do not fit the number of factors");
            for (Size p = 0; p < panels; ++p)
                require(starts.data()[p] <= starts.data()[p + 1],
                        "the starts of the panels must not decrease");
            require(static_cast<Size>(used.size()) == factors,
                    "there must be a word of used features for every factor");
            require(static_cast<Size>(bits.shape(1)) == rows.n_columns,
                    "bits must have one word per column of x");
            require(!column_scales || length_of(column_scales) == rows.n_columns,
                    "column_scales must have one number per column of x");
            map.bits = bits.data();
            map.used = used.data();
            map.starts = starts.data();
            map.weights = weights.data();
            map.column_scales = pointer_of(column_scales);
            nb::gil_scoped_release release;
            return sign_products<T>(map, rows, target);
        },
        "x"_a.noconvert(), "out"_a.noconvert(), nb::kw_only(), "bits"_a.noconvert(),
        "used"_a.noconvert(), "starts"_a.noconvert(), "weights"_a.noconvert(),
        "column_scales"_a.noconvert() = nb::none());

    m.def(
        "tensor_sketch_features",
        [](const AnyRows<T>& x, const Matrix<T>& out, const Table<std::int32_t>& buckets,
           const Table<T>& weights, Size length, const Table<T>& roots,
           const std::optional<Table<T>>& chirp, const std::optional<Table<T>>& filter,
           const OptionalVector<std::int32_t>& order, const OptionalVector<T>& factors) {
            const Rows<T> rows = rows_of<T>(x);
            const Output<T> target = output_of(out, rows.n_rows);
            TensorSketch<T> map;
            map.degree = static_cast<Size>(buckets.shape(0));
            map.n_inputs = static_cast<Size>(buckets.shape(1));
            map.n_buckets = target.n_columns;
            require(map.degree >= 1, "there must be a count sketch");
            require(map.n_inputs == rows.n_columns || map.n_inputs == rows.n_columns + 1,
                    "buckets must have the columns of x, or one more");
            require(has_shape(weights, map.degree, map.n_inputs),
                    "weights must have the shape of buckets");
            require(all_below(buckets.data(), buckets.size(), map.n_buckets),
                    "a bucket lies outside out");
            map.length = length;
            if (chirp) {
                require(filter.has_value(), "a chirp needs its filter");
                require(has_shape(*chirp, map.n_buckets, 2) && has_shape(*filter, length, 2),
                        "chirp and filter must be complex, one for the buckets, one for the "
                        "transform");
                require(length >= 2 * map.n_buckets - 1, "the transform is too short for a chirp");
                map.chirp = chirp->data();
                map.filter = filter->data();
            } else {
                require(length == map.n_buckets ||
                            (!order && (length - 1) / map.degree >= map.n_buckets - 1),
                        "the transform is too short");
            }
            require(is_power_of_two(map.length), "a transform's length must be a power of two");
            require(roots.shape(1) == 6 && 4 * static_cast<Size>(roots.shape(0)) >= map.length &&
                        roots.shape(0) >= 4,
                    "there must be six numbers for a fourth of the transform's length");
            if (order) {
                require(length_of(order) == map.n_buckets && length_of(factors) == map.n_buckets,
                        "order and factors must be as long as out has columns");
                require(all_below(order->data(), order->size(),
                                  chirp ? map.n_buckets / 2 * 2 + 2 : map.n_buckets),
                        "an output column lies outside the spectrum");
            }
            map.buckets = buckets.data();
            map.weights = weights.data();
            map.roots = roots.data();
            map.order = pointer_of(order);
            map.factors = pointer_of(factors);
            nb::gil_scoped_release release;
            return tensor_sketch<T>(map, rows, target);
        },
        "x"_a.noconvert(), "out"_a.noconvert(), nb::kw_only(), "buckets"_a.noconvert(),
        "weights"_a.noconvert(), "length"_a, "roots"_a.noconvert(),
        "chirp"_a.noconvert() = nb::none(), "filter"_a.noconvert() = nb::none(),
        "order"_a.noconvert() = nb::none(), "factors"_a.noconvert() = nb::none());

    m.def(
        "finish_features",
        [](const Matrix<const T>& z, const Matrix<T>& out, const TailSpecification& tail) {
            const Rows<T> rows = rows_of<T>(z);
            const Output<T> target = output_of(out, rows.n_rows);
            require(rows.n_columns == tail.frequencies_for(target.n_columns),
                    "z and out do not agree on the number of frequencies");
            const TailParameters<T> parameters = tail.parameters<T>(rows.n_columns);
            nb::gil_scoped_release release;
            return finish<T>(parameters, rows.values, rows.stride, rows.n_rows, rows.n_columns,
                             target);
        },
        "z"_a.noconvert(), "out"_a.noconvert(), "tail"_a);
}

// ---------------------------------------------------------------- random numbers

// Fills an array of shape (blocks, count).
template <class T, auto Fill> void bind_random(nb::module_& m, const char* name) {
    m.def(
        name,
        [](std::uint64_t seed, std::uint64_t stream, std::uint64_t first_block,
           nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu> out) {
            const Size blocks = static_cast<Size>(out.shape(0)),
                       count = static_cast<Size>(out.shape(1));
            require(count <= Size{1} << 31 || sizeof(T) != sizeof(std::int32_t),
                    "a block has at most 2^31 numbers");
            nb::gil_scoped_release release;
            Fill({seed, stream}, first_block, blocks, count, out.data());
        },
        "seed"_a, "stream"_a, "first_block"_a, "out"_a.noconvert());
}

}  // namespace
}  // namespace kitchenette

NB_MODULE(_core, m) {
    using namespace kitchenette;
    m.doc() = "The native core of kitchenette. Private: use the package.";

    m.def("simd_variants", [] {
        std::vector<std::string> names;
        const VariantList& list = available_variants();
        for (int i = 0; i < list.count; ++i) names.emplace_back(list.items[i]->name);
        return names;
    });
    m.def("simd", [] { return std::string(current_variant().name); });
    m.def(
        "set_simd", [](const std::string& name) { return select_variant(name.c_str()); }, "name"_a);
    m.def("lanes", [] { return current_variant().kernels_float->lanes; });
    m.def("max_threads", &max_threads);
    m.def("cpu_quota", &cpu_quota, "membership"_a, "mount"_a);
    m.attr("openmp") = built_with_openmp();

    nb::class_<TailSpecification>(m, "Tail").def(
        "__init__",
        [](TailSpecification* self, const std::string& kind, double amplitude, nb::object terms,
           double unpaired_offset, double row_weight,
           std::optional<Vector<const std::int32_t>> degrees, nb::object slopes, nb::object drags,
           Size row_power) {
            new (self) TailSpecification{tail_named(kind),  amplitude,        std::move(terms),
                                         unpaired_offset,   row_weight,       std::move(degrees),
                                         std::move(slopes), std::move(drags), row_power};
        },
        "kind"_a, "amplitude"_a = 1.0, "terms"_a = nb::none(), "unpaired_offset"_a = 0.0,
        "row_weight"_a = 0.0, "degrees"_a = nb::none(), "slopes"_a = nb::none(),
        "drags"_a = nb::none(), "row_power"_a = -1);

    bind_operations<float>(m);
    bind_operations<double>(m);
    bind_statistics(m);

    bind_random<std::uint64_t, philox_words>(m, "philox_words");
    bind_random<double, philox_uniforms>(m, "philox_uniforms");
    bind_random<float, philox_normals<float>>(m, "philox_normals");
    bind_random<double, philox_normals<double>>(m, "philox_normals");
    bind_random<std::int8_t, philox_signs>(m, "philox_signs");
    bind_random<std::int32_t, philox_permutations>(m, "philox_permutations");
}
