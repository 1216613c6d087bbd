// The Python module kitchenette._core. Nothing is computed here.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "drivers.hpp"
#include "random.hpp"
#include "threads.hpp"

using namespace nanobind::literals;

namespace kitchenette {
namespace {

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

template <class T> void bind_row_keys(nb::module_& m) {
    m.def(
        "row_keys",
        [](const AnyRows<T>& x, const Vector<std::uint64_t>& out) {
            const Rows<T> rows = rows_of<T>(x);
            require(static_cast<Size>(out.size()) == rows.n_rows, "out must have a key per row");
            nb::gil_scoped_release release;
            row_keys(rows, out.data());
        },
        "x"_a.noconvert(), "out"_a.noconvert());
}

}  // namespace
}  // namespace kitchenette

NB_MODULE(_core, m) {
    using namespace kitchenette;
    m.doc() = "The native core of kitchenette. Private: use the package.";
    // Objects that a daemon thread or another module still holds when the interpreter ends are no
    // leaks, but nanobind would print a list of them.
    nb::set_leak_warnings(false);

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
    m.def("cpu_quota", &cpu_quota, "membership"_a, "mount"_a);
    m.attr("openmp") = built_with_openmp();

    bind_row_keys<float>(m);
    bind_row_keys<double>(m);
    bind_operators(m);
    bind_products(m);
    bind_statistics(m);

    bind_random<std::uint64_t, philox_words>(m, "philox_words");
    bind_random<double, philox_uniforms>(m, "philox_uniforms");
    bind_random<float, philox_normals<float>>(m, "philox_normals");
    bind_random<double, philox_normals<double>>(m, "philox_normals");
    bind_random<std::int8_t, philox_signs>(m, "philox_signs");
    bind_random<std::int32_t, philox_permutations>(m, "philox_permutations");
}
