// All kinds of operators that have vector code. To add one, write a header with its parameters,
// write_features and scratch_size, include and name it here, and bind a function in
// bind_operators.cpp that checks its parameters and makes it.
#pragma once

#include "affine.hpp"
#include "columns.hpp"
#include "dense.hpp"
#include "products.hpp"
#include "structured.hpp"
#include "tensor_sketch.hpp"
#include "variants.hpp"

#define KITCHENETTE_OPERATOR_KINDS(apply, separator)                                           \
    apply(Structured) separator() apply(Dense) separator() apply(HadamardProducts) separator() \
        apply(SignProducts) separator() apply(ComplexProducts) separator() apply(TensorSketch) \
            separator() apply(SketchTree) separator() apply(Affine) separator()                \
                apply(ScaledColumns) separator() apply(MappedColumns) separator() apply(UnitRows)

#define KITCHENETTE_COMMA() ,

namespace kitchenette {

// Everything that is compiled for one instruction set and element type.
#define KITCHENETTE_BASE(kind) OperatorCode<T, kind>
template <class T> struct VectorCode
    : CommonCode<T>,
      KITCHENETTE_OPERATOR_KINDS(KITCHENETTE_BASE, KITCHENETTE_COMMA) {};
#undef KITCHENETTE_BASE

// One instruction set.
struct Variant {
    const char* name;
    const VectorCode<float>* code_float;
    const VectorCode<double>* code_double;
};

}  // namespace kitchenette
