// Compiled once per instruction set and element type, named by KITCHENETTE_VARIANT and
// KITCHENETTE_TYPE.
#include <type_traits>

#include "linear.hpp"
#include "operator_kinds.hpp"
#include "strips.hpp"

namespace kitchenette::KITCHENETTE_VARIANT {

template <class T> void hadamard_pass(T* x, Size length, Size q, Size run, Size begin, Size end) {
    pass_runs<8>(x, length, q, run, begin, end);
}

template <class T> bool finish_row(const NonlinearityParameters<T>& nonlinearity, const T* z,
                                   Size n_frequencies, Size row, const Output<T>& out) {
    constexpr Size N = lanes<T>;
    return with_nonlinearity<T>(nonlinearity, [&](const auto& function) {
        using Function = std::remove_cvref_t<decltype(function)>;
        RowWriter<T, Function> writer(function, nonlinearity, out, row);
        Size f = 0;
        for (; f + N <= n_frequencies; f += N) writer.write(f, load(z + f));
        if (f < n_frequencies) {
            Vec<T> rest = zero<T>();
            std::memcpy(&rest, z + f, sizeof(T) * (n_frequencies - f));
            writer.write(f, rest);
        }
        return !writer.overflow;
    });
}

#define KITCHENETTE_JOIN_(a, b) a##b
#define KITCHENETTE_JOIN(a, b) KITCHENETTE_JOIN_(a, b)
#define KITCHENETTE_TABLE KITCHENETTE_JOIN(code_, KITCHENETTE_TYPE)
#define KITCHENETTE_ENTRY(kind)                      \
    OperatorCode<Number, kind> {                     \
        scratch_size<Number>, write_features<Number> \
    }

using Number = KITCHENETTE_TYPE;
extern const VectorCode<Number> KITCHENETTE_TABLE;
const VectorCode<Number> KITCHENETTE_TABLE = {
    {
        lanes<Number>,
        hadamard_row<Number>,
        hadamard_runs<Number>,
        hadamard_columns<Number>,
        hadamard_pass<Number>,
        finish_row<Number>,
        add_sums<Number>,
        center_rows<Number>,
        strip_width<Number>,
        product_of_strips<Number>(),
        add_dot_products<Number>,
        add_outer_products<Number>,
    },
    KITCHENETTE_OPERATOR_KINDS(KITCHENETTE_ENTRY, KITCHENETTE_COMMA)};

}  // namespace kitchenette::KITCHENETTE_VARIANT
