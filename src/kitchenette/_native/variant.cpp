// Compiled once per instruction set and element type, named by KITCHENETTE_VARIANT and
// KITCHENETTE_TYPE.
#include <type_traits>

#include "dense.hpp"
#include "products.hpp"
#include "strips.hpp"
#include "structured.hpp"
#include "tensor_sketch.hpp"

namespace kitchenette::KITCHENETTE_VARIANT {

template <class T> void hadamard_pass(T* x, Size length, Size q, Size run, Size begin, Size end) {
    pass_runs<8>(x, length, q, run, begin, end);
}

template <class T> bool finish_row(const TailParameters<T>& tail, const T* z, Size begin,
                                   Size count, T* out_row, Size n_columns) {
    constexpr Size N = lanes<T>;
    return with_tail<T>(tail, [&](const auto& function) {
        using Function = std::remove_cvref_t<decltype(function)>;
        RowWriter<T, Function> writer{function, tail, out_row, n_columns, {}};
        Size i = 0;
        for (; i + N <= count; i += N) writer.write(begin + i, load(z + i));
        if (i < count) {
            Vec<T> rest = zero<T>();
            std::memcpy(&rest, z + i, sizeof(T) * (count - i));
            writer.write(begin + i, rest);
        }
        return !writer.overflow;
    });
}

#define KITCHENETTE_JOIN_(a, b) a##b
#define KITCHENETTE_JOIN(a, b) KITCHENETTE_JOIN_(a, b)
#define KITCHENETTE_TABLE KITCHENETTE_JOIN(kernels_, KITCHENETTE_TYPE)

using Number = KITCHENETTE_TYPE;
extern const Kernels<Number> KITCHENETTE_TABLE;
const Kernels<Number> KITCHENETTE_TABLE = {
    lanes<Number>,
    hadamard_row<Number>,
    hadamard_runs<Number>,
    hadamard_columns<Number>,
    hadamard_pass<Number>,
    structured_scratch<Number>,
    structured_lanes<Number>,
    structured_row<Number>,
    dense_scratch<Number>,
    dense_rows<Number>,
    hadamard_products_scratch<Number>,
    hadamard_products_lanes<Number>,
    hadamard_products_row<Number>,
    sign_products_scratch<Number>,
    sign_products_rows<Number>,
    tensor_sketch_scratch<Number>,
    tensor_sketch_rows<Number>,
    add_sums<Number>,
    centre_rows<Number>,
    strip_width<Number>,
    product_of_strips<Number>(),
    finish_row<Number>,
};

}  // namespace kitchenette::KITCHENETTE_VARIANT
