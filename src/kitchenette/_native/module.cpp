// The Python module kitchenette._core. Nothing is computed here.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "drivers.hpp"
#include "gram.hpp"
#include "random.hpp"

using namespace nanobind::literals;

namespace kitchenette {
namespace {

// ---------------------------------------------------------------- Gram matrices

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

constexpr Size bound = Size{1} << 31;  // of the numbers that the BLAS takes

template <class T> void bind_gram(nb::module_& m) {
    m.def(
        "add_column_sums",
        [](const Matrix<const T>& z, const Vector<double>& sums,
           const OptionalVector<double>& weights) {
            const Rows<T> rows = rows_of<T>(z);
            require(static_cast<Size>(sums.size()) == rows.n_columns, "a sum for every column");
            require_aligned(sums.data());
            if (weights) require_aligned(weights->data());
            require(!weights || length_of(weights) == rows.n_rows, "a weight for every row");
            nb::gil_scoped_release release;
            return add_column_sums<T>(rows.values, rows.stride, rows.n_rows, rows.n_columns,
                                      pointer_of(weights), sums.data());
        },
        "z"_a.noconvert(), "sums"_a.noconvert(), "weights"_a.noconvert() = nb::none());

    m.def(
        "centre_rows",
        [](const Matrix<const T>& z, const Vector<const double>& mean,
           const OptionalVector<double>& roots, const OptionalVector<double>& last,
           const Vector<T>& memory, Size first, Size capacity) {
            const Rows<T> rows = rows_of<T>(z);
            const Size order = rows.n_columns;
            require(order < bound && capacity < bound, "the matrix is too large");
            require(static_cast<Size>(mean.size()) == order, "a mean for every column");
            require(!roots || length_of(roots) == rows.n_rows, "a root for every row");
            require(!last || length_of(last) == order, "the last row has a number per column");
            require(
                first >= 0 && first <= capacity && rows.n_rows <= capacity - first - (last ? 1 : 0),
                "the rows exceed the capacity");
            require(static_cast<Size>(memory.size()) >= waiting_size(capacity, order),
                    "memory must have waiting_size numbers");
            require_aligned(mean.data());
            if (roots) require_aligned(roots->data());
            if (last) require_aligned(last->data());
            require_aligned(memory.data());
            if (order == 0) return;
            nb::gil_scoped_release release;
            centre_rows<T>(rows.values, rows.stride, rows.n_rows, mean.data(), pointer_of(roots),
                           pointer_of(last), first, {memory.data(), capacity, order});
        },
        "z"_a.noconvert(), "mean"_a.noconvert(), "roots"_a.noconvert().none(),
        "last"_a.noconvert().none(), "memory"_a.noconvert(), "first"_a, "capacity"_a);

    m.def(
        "add_products",
        [](const Vector<T>& memory, Size capacity, const Table<T>& targets,
           const Vector<double>& packed,
           const nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>& cross,
           double scale, const nb::capsule& gemm, const nb::capsule& syrk) {
            const Size order = static_cast<Size>(cross.shape(0));
            const Size n_rows = static_cast<Size>(targets.shape(0));
            const Size n_targets = static_cast<Size>(targets.shape(1));
            require(capacity >= 0 && capacity < bound && order < bound && n_targets < bound,
                    "the matrix is too large");
            require(n_rows <= capacity, "the rows exceed the capacity");
            require(static_cast<Size>(memory.size()) >= waiting_size(capacity, order),
                    "memory must have waiting_size numbers");
            require(static_cast<Size>(packed.size()) == order * (order + 1) / 2,
                    "a packed matrix has order (order + 1) / 2 numbers");
            require(static_cast<Size>(cross.shape(1)) == n_targets,
                    "cross must have a column for every target");
            require_aligned(memory.data());
            require_aligned(targets.data());
            require_aligned(packed.data());
            require_aligned(cross.data());
            Blas<T> blas;
            read_blas_function<T>(gemm, 3, blas.gemm);
            read_blas_function<T>(syrk, 2, blas.syrk);
            if (n_rows == 0 || order == 0) return;
            nb::gil_scoped_release release;
            add_products<T>({memory.data(), capacity, order}, n_rows, targets.data(), n_targets,
                            scale, blas, packed.data(), cross.data());
        },
        "memory"_a.noconvert(), "capacity"_a, "targets"_a.noconvert(), "packed"_a.noconvert(),
        "cross"_a.noconvert(), "scale"_a, "gemm"_a, "syrk"_a);
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
    m.def("lanes", [] { return vector_code<float>().lanes; });
    m.def("max_threads", &max_threads);
    m.def("waiting_size", &waiting_size, "capacity"_a, "n_columns"_a);
    m.def("products_call_blas", &products_call_blas);
    m.attr("openmp") = built_with_openmp();

    bind_operators(m);
    bind_gram<float>(m);
    bind_gram<double>(m);

    bind_random<std::uint64_t, philox_words>(m, "philox_words");
    bind_random<double, philox_uniforms>(m, "philox_uniforms");
    bind_random<float, philox_normals<float>>(m, "philox_normals");
    bind_random<double, philox_normals<double>>(m, "philox_normals");
    bind_random<std::int8_t, philox_signs>(m, "philox_signs");
    bind_random<std::int32_t, philox_permutations>(m, "philox_permutations");
}
