// Python bindings of operators. All preconditions of native code are checked here when an operator
// is made; calls only check rows and output.
//
// An operator owns copies of all index arrays, so that they cannot change after they were checked,
// and keeps references to arrays of real numbers.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include "operator_bindings.hpp"

using namespace nanobind::literals;

namespace kitchenette {
namespace {

constexpr Size most = Size{1} << 40;  // limit of columns and features, so that no product overflows

void require_sizes(Size n_columns, Size n_features) {
    require(n_columns >= 1 && n_columns <= most, "there must be a column, and not too many");
    require(n_features >= 1 && n_features <= most, "there must be a feature, and not too many");
}

// Collects the arrays that an operator keeps alive.
class ArrayCollector {
  public:
    // A pointer to the numbers of an array, which is not copied.
    template <class Array> auto reference(const Array& array) {
        require_aligned(array.data());
        arrays_.push_back(std::make_shared<Array>(array));
        return array.data();
    }
    template <class Array> auto reference(const std::optional<Array>& array) {
        return array ? reference(*array) : nullptr;
    }
    // A copy of the numbers of an array.
    template <class Array> auto copy(const Array& array) {
        using Number = std::remove_cvref_t<decltype(*array.data())>;
        require_aligned(array.data());
        auto owned =
            std::make_shared<std::vector<Number>>(array.data(), array.data() + array.size());
        const Number* numbers = owned->data();
        arrays_.push_back(std::move(owned));
        return numbers;
    }
    template <class Array> auto copy(const std::optional<Array>& array) {
        return array ? copy(*array) : nullptr;
    }
    Arrays arrays() { return std::move(arrays_); }

  private:
    Arrays arrays_;
};

// ---------------------------------------------------------------- nonlinearities

Nonlinearity nonlinearity_named(const std::string& name) {
    if (name == "identity") return Nonlinearity::identity;
    if (name == "sincos") return Nonlinearity::sincos;
    if (name == "offset") return Nonlinearity::offset;
    if (name == "local") return Nonlinearity::local;
    if (name == "power") return Nonlinearity::power;
    throw std::invalid_argument("unknown nonlinearity '" + name + "'");
}

// A nonlinearity of either precision; the precision of its arrays is checked against the operator.
struct NonlinearitySpecification {
    Nonlinearity kind;
    double amplitude;
    nb::object terms;
    double unpaired_offset;
    double row_weight;
    std::optional<Vector<const std::int32_t>> degrees;
    nb::object leading;
    nb::object trailing;
    Size row_power;

    // The frequencies that n_columns output columns need.
    Size frequencies_for(Size n_columns) const {
        return kind == Nonlinearity::sincos ? (n_columns + 1) / 2 : n_columns;
    }

    template <class T> static const T* numbers(const nb::object& object, Size length,
                                               const char* what, ArrayCollector& collector) {
        Vector<const T> array;
        require(!object.is_none() && nb::try_cast(object, array, false), what);
        require(static_cast<Size>(array.size()) >= length, what);
        return collector.reference(array);
    }

    // `length` is the number of terms that will be read.
    template <class T>
    NonlinearityParameters<T> parameters(Size length, ArrayCollector& collector) const {
        NonlinearityParameters<T> nonlinearity;
        nonlinearity.kind = kind;
        nonlinearity.amplitude = static_cast<T>(amplitude);
        nonlinearity.unpaired_offset = static_cast<T>(unpaired_offset);
        nonlinearity.row_weight = static_cast<T>(row_weight);
        if (kind == Nonlinearity::offset || kind == Nonlinearity::local ||
            kind == Nonlinearity::power)
            nonlinearity.terms = numbers<T>(terms, length,
                                            "this nonlinearity needs a term for every frequency, "
                                            "in the precision of the operator",
                                            collector);
        if (kind == Nonlinearity::power) {
            require(length_of(degrees) >= length,
                    "this nonlinearity needs a degree for every frequency");
            nonlinearity.degrees = collector.copy(degrees);
            std::int32_t highest = 0;
            for (Size f = 0; f < length; ++f) {
                require(nonlinearity.degrees[f] >= 0, "a degree is negative");
                highest = std::max(highest, nonlinearity.degrees[f]);
            }
            nonlinearity.leading =
                numbers<T>(leading, highest,
                           "this nonlinearity needs a leading coefficient per degree", collector);
            nonlinearity.trailing =
                numbers<T>(trailing, highest,
                           "this nonlinearity needs a trailing coefficient per degree", collector);
            nonlinearity.row_power = row_power;
        }
        return nonlinearity;
    }
};

void bind_nonlinearities(nb::module_& m) {
    nb::class_<NonlinearitySpecification>(m, "Nonlinearity")
        .def(
            "__init__",
            [](NonlinearitySpecification* self, const std::string& kind, double amplitude,
               nb::object terms, double unpaired_offset, double row_weight,
               std::optional<Vector<const std::int32_t>> degrees, nb::object leading,
               nb::object trailing, Size row_power) {
                new (self) NonlinearitySpecification{
                    nonlinearity_named(kind), amplitude,           std::move(terms),
                    unpaired_offset,          row_weight,          std::move(degrees),
                    std::move(leading),       std::move(trailing), row_power};
            },
            "kind"_a, "amplitude"_a = 1.0, "terms"_a = nb::none(), "unpaired_offset"_a = 0.0,
            "row_weight"_a = 0.0, "degrees"_a = nb::none(), "leading"_a = nb::none(),
            "trailing"_a = nb::none(), "row_power"_a = -1);
}

// ---------------------------------------------------------------- what Python holds

template <class T, template <class> class Parameters>
OperatorHandle<T> make_operator(const Parameters<T>& parameters, ArrayCollector& collector) {
    return {std::make_shared<VectorOperator<T, Parameters>>(parameters, collector.arrays())};
}

template <class T> Output<T> output_of(const Matrix<T>& out, Size n_rows, Size n_columns) {
    require_output(out, n_rows, n_columns);
    Output<T> result;
    result.data = out.data();
    result.stride = out.stride(0);
    result.n_columns = n_columns;
    return result;
}

template <class T> void bind_class(nb::module_& m, const char* operator_name) {
    nb::class_<OperatorHandle<T>>(m, operator_name)
        .def_prop_ro("n_columns",
                     [](const OperatorHandle<T>& self) { return self.shared->n_columns(); })
        .def_prop_ro("n_features",
                     [](const OperatorHandle<T>& self) { return self.shared->n_features(); })
        .def(
            "write",
            [](const OperatorHandle<T>& self, const AnyRows<T>& x, const Matrix<T>& out) {
                const Operator<T>& features = *self.shared;
                const Rows<T> rows = rows_for(features, x);
                const Output<T> target = output_of(out, rows.n_rows, features.n_features());
                nb::gil_scoped_release release;
                return features.run(vector_code<T>(), rows, target);
            },
            "x"_a.noconvert(), "out"_a.noconvert());
}

// ---------------------------------------------------------------- projections

template <class T> void bind_projections(nb::module_& m) {
    m.def(
        "structured",
        [](const NonlinearitySpecification& nonlinearity, Size n_columns, Size n_features,
           Size block, const Vector<const std::int8_t>& signs, const Vector<const T>& scales,
           const OptionalVector<std::int32_t>& permutation, const OptionalVector<T>& gaussians,
           const OptionalVector<T>& cosines, const OptionalVector<T>& sines,
           const OptionalVector<T>& column_scales, double constant) {
            require_sizes(n_columns, n_features);
            require(is_power_of_two(block) && block < Size{1} << 31,
                    "block must be a power of two");
            Structured<T> map;
            map.n_columns = n_columns;
            map.n_features = n_features;
            map.block = block;
            map.n_frequencies = nonlinearity.frequencies_for(n_features);
            map.constant = static_cast<T>(constant);
            const Size padded = static_cast<Size>(signs.size());
            require(map.width() <= block, "there are more columns than a block has");
            require(padded % map.tile() == 0 && padded >= map.n_frequencies,
                    "signs must fill whole tiles for all frequencies");
            require(static_cast<Size>(scales.size()) == padded, "scales must be as long as signs");
            ArrayCollector collector;
            map.signs = collector.copy(signs);
            map.scales = collector.reference(scales);
            if (permutation) {
                require(length_of(permutation) == padded && length_of(gaussians) == padded,
                        "permutation and gaussians must be as long as signs");
                map.permutation = collector.copy(permutation);
                map.gaussians = collector.reference(gaussians);
                require(all_below(map.permutation, permutation->size(), block),
                        "a permuted coordinate lies outside its block");
            } else {
                require(length_of(cosines) == padded && length_of(sines) == padded,
                        "cosines and sines must be as long as signs");
                map.cosines = collector.reference(cosines);
                map.sines = collector.reference(sines);
            }
            require(!column_scales || length_of(column_scales) == n_columns,
                    "column_scales must have one number per column");
            map.column_scales = collector.reference(column_scales);
            map.nonlinearity = nonlinearity.parameters<T>(padded, collector);
            return make_operator(map, collector);
        },
        "nonlinearity"_a, nb::kw_only(), "n_columns"_a, "n_features"_a, "block"_a,
        "signs"_a.noconvert(), "scales"_a.noconvert(), "permutation"_a.noconvert() = nb::none(),
        "gaussians"_a.noconvert() = nb::none(), "cosines"_a.noconvert() = nb::none(),
        "sines"_a.noconvert() = nb::none(), "column_scales"_a.noconvert() = nb::none(),
        "constant"_a = 0.0);

    m.def(
        "dense",
        [](const NonlinearitySpecification& nonlinearity,
           const nb::ndarray<const T, nb::ndim<3>, nb::c_contig, nb::device::cpu>& panels,
           Size n_features) {
            Dense<T> map;
            map.n_columns = static_cast<Size>(panels.shape(1));
            map.n_features = n_features;
            require_sizes(map.n_columns, n_features);
            map.n_frequencies = nonlinearity.frequencies_for(n_features);
            require(static_cast<Size>(panels.shape(2)) == panel,
                    "a panel must have 64 frequencies");
            require(static_cast<Size>(panels.shape(0)) * panel >= map.n_frequencies,
                    "there are fewer frequencies than the features need");
            require(nonlinearity.kind != Nonlinearity::local &&
                        nonlinearity.kind != Nonlinearity::power,
                    "this nonlinearity needs the norms of rows, which dense projections do not "
                    "compute");
            ArrayCollector collector;
            map.panels = collector.reference(panels);
            map.nonlinearity = nonlinearity.parameters<T>(map.n_frequencies, collector);
            return make_operator(map, collector);
        },
        "nonlinearity"_a, nb::kw_only(), "panels"_a.noconvert(), "n_features"_a);
}

// ---------------------------------------------------------------- products

// True if no feature depends on the row, that is, if the indices of all factors point after the
// last coordinate.
template <class T> bool is_constant(const HadamardProducts<T>& map) {
    for (Size f = 0; f < map.n_features; ++f)
        for (Size j = 0; j < map.depths[f / product_group]; ++j)
            if (map.indices[j * map.n_padded + f] < map.tile()) return false;
    return true;
}

template <class T> void bind_products(nb::module_& m) {
    m.def(
        "hadamard_products",
        [](Size n_columns, Size n_features, Size block, const Table<std::int8_t>& signs,
           const Table<std::int32_t>& indices, const Vector<const std::int32_t>& depths,
           const Vector<const T>& weights, const OptionalVector<T>& column_scales) {
            require_sizes(n_columns, n_features);
            require(is_power_of_two(block) && block < Size{1} << 31,
                    "block must be a power of two");
            HadamardProducts<T> map;
            map.n_columns = n_columns;
            map.n_features = n_features;
            map.n_padded = static_cast<Size>(weights.size());
            map.n_factors = static_cast<Size>(signs.shape(0));
            map.block = block;
            require(static_cast<Size>(signs.shape(1)) == map.tile(), "signs must fill a tile");
            require(n_columns <= block, "there are more columns than a block has");
            require(map.n_padded % product_group == 0 && map.n_padded >= n_features,
                    "weights must fill whole groups for all features");
            require(has_shape(indices, map.n_factors, map.n_padded),
                    "indices must have a row per factor and a column per weight");
            require(static_cast<Size>(depths.size()) * product_group == map.n_padded,
                    "there must be a depth for every group of features");
            require(!column_scales || length_of(column_scales) == n_columns,
                    "column_scales must have one number per column");
            ArrayCollector collector;
            map.signs = collector.copy(signs);
            map.indices = collector.copy(indices);
            map.depths = collector.copy(depths);
            map.weights = collector.reference(weights);
            map.column_scales = collector.reference(column_scales);
            require(all_below(map.indices, indices.size(), map.tile() + 1),
                    "a coordinate lies outside its block");
            require(all_below(map.depths, depths.size(), map.n_factors + 1),
                    "a group of features has more factors than there are");
            map.constant = is_constant(map);
            return make_operator(map, collector);
        },
        nb::kw_only(), "n_columns"_a, "n_features"_a, "block"_a, "signs"_a.noconvert(),
        "indices"_a.noconvert(), "depths"_a.noconvert(), "weights"_a.noconvert(),
        "column_scales"_a.noconvert() = nb::none());

    m.def(
        "complex_products",
        [](Size n_columns, Size n_products, Size block, const Table<std::int8_t>& signs,
           const Table<std::int32_t>& indices, const Vector<const std::int32_t>& depths,
           const Vector<const T>& weights, const OptionalVector<T>& column_scales) {
            require_sizes(n_columns, n_products);
            require(is_power_of_two(block) && block < Size{1} << 31,
                    "block must be a power of two");
            ComplexProducts<T> map;
            map.n_columns = n_columns;
            map.n_features = 2 * n_products;
            map.n_padded = static_cast<Size>(weights.size());
            map.n_factors = static_cast<Size>(indices.shape(0));
            map.block = block;
            require(has_shape(signs, 2 * map.n_factors, map.tile()),
                    "signs must have two rows per factor, which fill a tile");
            require(n_columns <= block, "there are more columns than a block has");
            require(map.n_padded % product_group == 0 && map.n_padded >= n_products,
                    "weights must fill whole groups for all products");
            require(static_cast<Size>(indices.shape(1)) == map.n_padded,
                    "indices must have a column per weight");
            require(static_cast<Size>(depths.size()) * product_group == map.n_padded,
                    "there must be a depth for every group of products");
            require(!column_scales || length_of(column_scales) == n_columns,
                    "column_scales must have one number per column");
            ArrayCollector collector;
            map.signs = collector.copy(signs);
            map.indices = collector.copy(indices);
            map.depths = collector.copy(depths);
            map.weights = collector.reference(weights);
            map.column_scales = collector.reference(column_scales);
            require(all_below(map.indices, indices.size(), map.tile() + 1),
                    "a coordinate lies outside its block");
            require(all_below(map.depths, depths.size(), map.n_factors + 1),
                    "a group of products has more factors than there are");
            for (Size g = 0; g < map.n_padded / product_group; ++g)
                require(map.depths[g] > 0 || g * product_group >= n_products,
                        "every product must have a factor");
            return make_operator(map, collector);
        },
        nb::kw_only(), "n_columns"_a, "n_products"_a, "block"_a, "signs"_a.noconvert(),
        "indices"_a.noconvert(), "depths"_a.noconvert(), "weights"_a.noconvert(),
        "column_scales"_a.noconvert() = nb::none());

    m.def(
        "sign_products",
        [](Size n_columns, Size n_features, const Table<std::uint64_t>& bits,
           const Vector<const std::uint64_t>& used, const Vector<const std::int64_t>& starts,
           const Vector<const T>& weights, const OptionalVector<T>& column_scales) {
            require_sizes(n_columns, n_features);
            SignProducts<T> map;
            map.n_columns = n_columns;
            map.n_features = n_features;
            const Size panels = static_cast<Size>(starts.size()) - 1;
            const Size factors = static_cast<Size>(bits.shape(0));
            require(panels >= 1 && panels * panel >= n_features,
                    "there are fewer panels than the features need");
            require(static_cast<Size>(weights.size()) == panels * panel,
                    "weights must fill whole panels");
            require(static_cast<Size>(used.size()) == factors,
                    "there must be a word of used features for every factor");
            require(static_cast<Size>(bits.shape(1)) == n_columns,
                    "bits must have one word per column");
            require(!column_scales || length_of(column_scales) == n_columns,
                    "column_scales must have one number per column");
            ArrayCollector collector;
            map.bits = collector.copy(bits);
            map.used = collector.copy(used);
            map.starts = collector.copy(starts);
            map.weights = collector.reference(weights);
            map.column_scales = collector.reference(column_scales);
            require(map.starts[0] == 0 && map.starts[panels] == factors,
                    "the starts of the panels do not fit the number of factors");
            for (Size p = 0; p < panels; ++p)
                require(map.starts[p] <= map.starts[p + 1],
                        "the starts of the panels must not decrease");
            return make_operator(map, collector);
        },
        nb::kw_only(), "n_columns"_a, "n_features"_a, "bits"_a.noconvert(), "used"_a.noconvert(),
        "starts"_a.noconvert(), "weights"_a.noconvert(),
        "column_scales"_a.noconvert() = nb::none());
}

// ---------------------------------------------------------------- tensor sketches

// The transforms of a sketch, which are the same for all factors; its buckets have been checked.
template <class T>
void set_transforms(TensorSketch<T>& map, Size length, const Table<T>& roots, Size part,
                    const Table<T>& circle, const std::optional<Table<T>>& chirp,
                    const std::optional<Table<T>>& filter,
                    const OptionalVector<std::int32_t>& positions,
                    const OptionalVector<T>& output_scales, ArrayCollector& collector) {
    const Size n_buckets = map.n_features;
    map.length = length;
    if (chirp) {
        require(filter.has_value(), "a chirp needs its filter");
        require(has_shape(*chirp, n_buckets, 2) && has_shape(*filter, length, 2),
                "chirp and filter must be complex, one for the buckets, one for the transform");
        require(length >= 2 * n_buckets - 1, "the transform is too short for a chirp");
    } else {
        require(length == n_buckets || (!positions && (length - 1) / map.degree >= n_buckets - 1),
                "the transform is too short");
    }
    require(is_power_of_two(length), "a transform's length must be a power of two");
    require(roots.shape(1) == 6 && 4 * static_cast<Size>(roots.shape(0)) >= length &&
                roots.shape(0) >= 4,
            "there must be six numbers for a fourth of the transform's length");
    require(is_power_of_two(part) && (part & 0x5555555555555555) != 0,
            "a part's length must be a power of four");
    require(has_shape(circle, std::max(Size{1}, length / part), 2),
            "the circle must have a complex number for each part of the transform");
    require(
        !positions || (length_of(positions) == n_buckets && length_of(output_scales) == n_buckets),
        "positions and output_scales must have a number for every bucket");
    map.roots = collector.reference(roots);
    map.part = part;
    map.circle = collector.reference(circle);
    map.chirp = collector.reference(chirp);
    map.filter = collector.reference(filter);
    map.positions = collector.copy(positions);
    map.output_scales = collector.reference(output_scales);
    require(!positions || all_below(map.positions, positions->size(),
                                    chirp ? n_buckets / 2 * 2 + 2 : n_buckets),
            "a feature lies outside the spectrum");
}

// A tree of sketches. `children`, buckets and weights have two entries per node.
template <class T> OperatorHandle<T> make_sketch_tree(
    Size n_columns, Size n_buckets, Size width, const std::vector<Size>& children,
    const std::vector<Vector<const std::int32_t>>& buckets,
    const std::vector<Vector<const T>>& weights, Size length, const Table<T>& roots, Size part,
    const Table<T>& circle, const std::optional<Table<T>>& chirp,
    const std::optional<Table<T>>& filter, const OptionalVector<std::int32_t>& positions,
    const OptionalVector<T>& output_scales) {
    require_sizes(n_columns, n_buckets);
    require(is_power_of_two(width) && width < Size{1} << 31, "the width must be a power of two");
    const Size n_nodes = static_cast<Size>(children.size()) / 2;
    require(n_nodes >= 1 && n_nodes < Size{1} << 31, "there must be a node");
    const std::size_t n_factors = static_cast<std::size_t>(2 * n_nodes);
    require(
        children.size() == n_factors && buckets.size() == n_factors && weights.size() == n_factors,
        "every node must have two children with buckets and weights");
    ArrayCollector collector;
    auto nodes = std::make_shared<std::vector<SketchNode<T>>>(static_cast<std::size_t>(n_nodes));
    SketchTree<T> map;
    map.n_columns = n_columns;
    map.n_features = n_buckets;
    map.width = width;
    map.n_nodes = n_nodes;
    map.nodes = nodes->data();
    TensorSketch<T> last;
    last.n_columns = n_columns;
    last.n_features = n_buckets;
    last.degree = 2;
    set_transforms(last, length, roots, part, circle, chirp, filter, positions, output_scales,
                   collector);
    require(n_nodes == 1 || 4 * static_cast<Size>(roots.shape(0)) >= width,
            "there must be six numbers for a fourth of the width");
    // A node below the last one leaves its spectrum as it is.
    TensorSketch<T> inner;
    inner.n_columns = n_columns;
    inner.n_features = inner.length = width;
    inner.degree = 2;
    inner.roots = last.roots;
    inner.part = part;
    inner.circle = last.circle;
    std::vector<bool> has_parent(static_cast<std::size_t>(n_nodes), false);
    for (Size k = n_nodes - 1; k >= 0; --k) {
        SketchNode<T>& node = (*nodes)[static_cast<std::size_t>(k)];
        const bool is_last = k == n_nodes - 1;
        require(is_last || has_parent[static_cast<std::size_t>(k)],
                "every node but the last must be the child of a later one");
        node.sketch = is_last ? last : inner;
        for (Size f = 0; f < 2; ++f) {
            const std::size_t at = static_cast<std::size_t>(2 * k + f);
            NodeFactor<T>& factor = node.factors[f];
            factor.child = children[at];
            factor.n_inputs = static_cast<Size>(buckets[at].size());
            require(static_cast<Size>(weights[at].size()) == factor.n_inputs,
                    "there must be a weight for every bucket");
            if (factor.child < 0) {
                require(factor.n_inputs == n_columns || factor.n_inputs == n_columns + 1,
                        "buckets must have the columns of rows, or one more");
            } else {
                require(factor.child < k, "a child must come before its parent");
                require(factor.n_inputs == width, "buckets must have the inputs of a child");
                require(part >= width && part >= length,
                        "a node with children cannot be transformed in parts");
                const std::size_t child = static_cast<std::size_t>(factor.child);
                require(!has_parent[child], "a node cannot have two parents");
                has_parent[child] = true;
                (*nodes)[child].level = node.level + 1;
                map.n_levels = std::max(map.n_levels, node.level + 1);
            }
            factor.buckets = collector.copy(buckets[at]);
            factor.weights = collector.reference(weights[at]);
            require(all_below(factor.buckets, buckets[at].size(), is_last ? n_buckets : width),
                    "there is no such bucket");
        }
    }
    require(map.n_levels <= 64, "the tree is too deep");
    Arrays arrays = collector.arrays();
    arrays.push_back(std::move(nodes));
    return {std::make_shared<VectorOperator<T, SketchTree>>(map, std::move(arrays))};
}

template <class T> void bind_tensor_sketch(nb::module_& m) {
    m.def("sketch_tree", &make_sketch_tree<T>, nb::kw_only(), "n_columns"_a, "n_buckets"_a,
          "width"_a, "children"_a, "buckets"_a.noconvert(), "weights"_a.noconvert(), "length"_a,
          "roots"_a.noconvert(), "part"_a, "circle"_a.noconvert(),
          "chirp"_a.noconvert() = nb::none(), "filter"_a.noconvert() = nb::none(),
          "positions"_a.noconvert() = nb::none(), "output_scales"_a.noconvert() = nb::none());

    m.def(
        "tensor_sketch",
        [](Size n_columns, Size n_buckets, const Table<std::int32_t>& buckets,
           const Table<T>& weights, Size length, const Table<T>& roots, Size part,
           const Table<T>& circle, const std::optional<Table<T>>& chirp,
           const std::optional<Table<T>>& filter, const OptionalVector<std::int32_t>& positions,
           const OptionalVector<T>& output_scales) {
            require_sizes(n_columns, n_buckets);
            TensorSketch<T> map;
            map.n_columns = n_columns;
            map.n_features = n_buckets;
            map.degree = static_cast<Size>(buckets.shape(0));
            map.n_inputs = static_cast<Size>(buckets.shape(1));
            require(map.degree >= 1, "there must be a count sketch");
            require(map.n_inputs == n_columns || map.n_inputs == n_columns + 1,
                    "buckets must have the columns of rows, or one more");
            require(has_shape(weights, map.degree, map.n_inputs),
                    "weights must have the shape of buckets");
            ArrayCollector collector;
            map.buckets = collector.copy(buckets);
            map.weights = collector.reference(weights);
            require(all_below(map.buckets, buckets.size(), n_buckets), "there is no such bucket");
            set_transforms(map, length, roots, part, circle, chirp, filter, positions,
                           output_scales, collector);
            return make_operator(map, collector);
        },
        nb::kw_only(), "n_columns"_a, "n_buckets"_a, "buckets"_a.noconvert(),
        "weights"_a.noconvert(), "length"_a, "roots"_a.noconvert(), "part"_a,
        "circle"_a.noconvert(), "chirp"_a.noconvert() = nb::none(),
        "filter"_a.noconvert() = nb::none(), "positions"_a.noconvert() = nb::none(),
        "output_scales"_a.noconvert() = nb::none());
}

// ---------------------------------------------------------------- preparation of columns

bool are_finite(const double* numbers, Size count) {
    bool fine = true;
    for (Size k = 0; k < count; ++k) fine &= std::isfinite(numbers[k]);
    return fine;
}

bool do_increase(const double* numbers, Size count) {
    bool fine = true;
    for (Size k = 1; k < count; ++k) fine &= numbers[k - 1] < numbers[k];
    return fine;
}

bool is_target(double number, Size width) {
    return number >= -2 && number < static_cast<double>(width) && number == std::floor(number);
}

// The number of outputs of an item of MappedColumns, whose numbers are checked.
Size width_of_item(ColumnKind kind, const double* numbers, Size count) {
    switch (kind) {
        case ColumnKind::copy:
            require(count == 0, "a copy has no numbers");
            return 1;
        case ColumnKind::fill:
            require(count == 2, "a filled column has two numbers");
            return 1;
        case ColumnKind::flag:
            require(count == 1, "an indicator column has one number");
            return 1;
        case ColumnKind::interpolate:
        case ColumnKind::ranks:
            require(count >= 4 && count % 4 == 0, "every knot has four numbers");
            require(are_finite(numbers, count), "knots and values must be finite");
            require(do_increase(numbers, count / 4), "the knots must increase");
            return 1;
        case ColumnKind::categories: {
            require(count >= 3 && count % 2 == 1, "every category has a key and a target");
            require(are_finite(numbers, count), "keys and targets must be finite");
            const Size n_keys = (count - 3) / 2;
            const double* keys = numbers + 3;
            require(numbers[0] >= 0 && numbers[0] < 0x1p40 && numbers[0] == std::floor(numbers[0]),
                    "the number of columns of the categories is not valid");
            const Size width = static_cast<Size>(numbers[0]);
            require(do_increase(keys, n_keys), "the keys of categories must increase");
            bool fine = is_target(numbers[1], width) && is_target(numbers[2], width);
            for (Size k = 0; k < n_keys; ++k) fine &= is_target(keys[n_keys + k], width);
            require(fine, "a category has no such column");
            return width;
        }
    }
    throw std::invalid_argument("there is no such kind of column");
}

template <class T> OperatorHandle<T> make_scaled(const Vector<const double>& offsets,
                                                 const Vector<const double>& factors, double low,
                                                 double high) {
    ScaledColumns<T> map;
    map.n_columns = map.n_features = static_cast<Size>(offsets.size());
    require_sizes(map.n_columns, map.n_features);
    require(factors.size() == offsets.size(), "there must be a factor for every offset");
    require(low <= high, "the lower limit must not exceed the upper one");
    ArrayCollector collector;
    map.offsets = collector.copy(offsets);
    map.factors = collector.copy(factors);
    require(are_finite(map.offsets, map.n_columns) && are_finite(map.factors, map.n_columns),
            "offsets and factors must be finite");
    map.low = low;
    map.high = high;
    return make_operator(map, collector);
}

template <class T> OperatorHandle<T> make_mapped(Size n_columns,
                                                 const Vector<const std::int32_t>& kinds,
                                                 const Vector<const std::int32_t>& sources,
                                                 const Vector<const std::int64_t>& starts,
                                                 const Vector<const double>& numbers) {
    MappedColumns<T> map;
    map.n_columns = n_columns;
    map.n_items = static_cast<Size>(kinds.size());
    require_sizes(n_columns, Size{1});
    require(sources.size() == kinds.size() && starts.size() == kinds.size() + 1,
            "every item must have a kind, a column and numbers");
    ArrayCollector collector;
    map.kinds = collector.copy(kinds);
    map.sources = collector.copy(sources);
    map.starts = collector.copy(starts);
    map.numbers = collector.copy(numbers);
    require(all_below(map.sources, sources.size(), n_columns), "an item reads no such column");
    require(map.starts[0] == 0 && map.starts[map.n_items] == static_cast<Size>(numbers.size()),
            "the starts of the items do not fit the numbers");
    for (Size k = 0; k < map.n_items; ++k)
        require(map.starts[k] <= map.starts[k + 1], "the starts of the items must not decrease");
    auto outputs = std::make_shared<std::vector<std::int64_t>>();
    for (Size k = 0; k < map.n_items; ++k) {
        outputs->push_back(map.n_features);
        map.n_features +=
            width_of_item(static_cast<ColumnKind>(map.kinds[k]), map.numbers + map.starts[k],
                          map.starts[k + 1] - map.starts[k]);
        require(map.n_features <= most, "there are too many features");
    }
    require_sizes(n_columns, map.n_features);
    map.outputs = outputs->data();
    Arrays arrays = collector.arrays();
    arrays.push_back(std::move(outputs));
    return {std::make_shared<VectorOperator<T, MappedColumns>>(map, std::move(arrays))};
}

template <class T> OperatorHandle<T> make_unit_rows(Size n_columns, const std::string& norm) {
    UnitRows<T> map;
    map.n_columns = map.n_features = n_columns;
    require_sizes(n_columns, n_columns);
    require(norm == "l1" || norm == "l2" || norm == "max", "the norm must be l1, l2 or max");
    map.norm = norm == "l1" ? Norm::l1 : norm == "l2" ? Norm::l2 : Norm::max;
    ArrayCollector collector;
    return make_operator(map, collector);
}

template <class T> void bind_preparation(nb::module_& m, const std::string& bits) {
    m.def(("scaled_columns" + bits).c_str(), &make_scaled<T>, nb::kw_only(),
          "offsets"_a.noconvert(), "factors"_a.noconvert(), "low"_a, "high"_a);
    m.def(("mapped_columns" + bits).c_str(), &make_mapped<T>, nb::kw_only(), "n_columns"_a,
          "kinds"_a.noconvert(), "sources"_a.noconvert(), "starts"_a.noconvert(),
          "numbers"_a.noconvert());
    m.def(("unit_rows" + bits).c_str(), &make_unit_rows<T>, nb::kw_only(), "n_columns"_a, "norm"_a);
}

// ---------------------------------------------------------------- exact parts and compositions

template <class T> OperatorHandle<T> make_affine(Size n_columns, double constant, double slope) {
    Affine<T> map;
    map.n_columns = n_columns;
    map.constant = static_cast<T>(constant);
    map.slope = static_cast<T>(slope);
    require_sizes(n_columns, Size{1});
    require(std::isfinite(map.constant) && std::isfinite(map.slope) && map.constant >= 0 &&
                map.slope >= 0,
            "constant and slope must be finite numbers of at least zero");
    map.n_features = map.first_linear() + (map.slope != 0 ? n_columns : 0);
    require(map.n_features >= 1, "constant or slope must be greater than zero");
    ArrayCollector collector;
    return make_operator(map, collector);
}

template <class T> void bind_compositions(nb::module_& m, const char* affine_name) {
    m.def(affine_name, &make_affine<T>, nb::kw_only(), "n_columns"_a, "constant"_a, "slope"_a);

    m.def(
        "chain",
        [](const OperatorHandle<T>& first, const OperatorHandle<T>& second) {
            require(first.shared->n_features() == second.shared->n_columns(),
                    "the second operator must have as many columns as the first has features");
            return OperatorHandle<T>{std::make_shared<Chain<T>>(first.shared, second.shared)};
        },
        "first"_a, "second"_a);

    m.def(
        "concatenate",
        [](const std::vector<OperatorHandle<T>>& operators) {
            require(!operators.empty(), "there must be an operator");
            std::vector<SharedOperator<T>> parts;
            Size n_features = 0;
            for (const auto& one : operators) {
                require(one.shared->n_columns() == operators[0].shared->n_columns(),
                        "all operators must have the same columns");
                n_features += one.shared->n_features();
                require(n_features <= most, "there are too many features");
                parts.push_back(one.shared);
            }
            return OperatorHandle<T>{std::make_shared<Concatenation<T>>(std::move(parts))};
        },
        "operators"_a);
}

// ---------------------------------------------------------------- functions without operators

template <class T> void bind_functions(nb::module_& m) {
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
        "finish_features",
        [](const Matrix<const T>& z, const Matrix<T>& out,
           const NonlinearitySpecification& nonlinearity) {
            const Rows<T> rows = rows_of<T>(z);
            const Size n_columns = static_cast<Size>(out.shape(1));
            require(n_columns >= 1, "out must have columns");
            const Output<T> target = output_of(out, rows.n_rows, n_columns);
            require(rows.n_columns == nonlinearity.frequencies_for(n_columns),
                    "z and out do not agree on the number of frequencies");
            ArrayCollector collector;
            const NonlinearityParameters<T> parameters =
                nonlinearity.parameters<T>(rows.n_columns, collector);
            nb::gil_scoped_release release;
            return finish<T>(parameters, rows.values, rows.stride, rows.n_rows, rows.n_columns,
                             target);
        },
        "z"_a.noconvert(), "out"_a.noconvert(), "nonlinearity"_a);
}

template <class T> void bind_all(nb::module_& m) {
    bind_projections<T>(m);
    bind_products<T>(m);
    bind_tensor_sketch<T>(m);
    bind_functions<T>(m);
}

}  // namespace

void bind_operators(nb::module_& m) {
    bind_nonlinearities(m);
    bind_class<float>(m, "Operator32");
    bind_class<double>(m, "Operator64");
    bind_all<float>(m);
    bind_all<double>(m);
    bind_compositions<float>(m, "affine32");
    bind_compositions<double>(m, "affine64");
    bind_preparation<float>(m, "32");
    bind_preparation<double>(m, "64");
}

}  // namespace kitchenette
