// Functions of the BLAS and of LAPACK as exported by SciPy, with Fortran's arguments and 32-bit
// integers.
#pragma once

#include <type_traits>

namespace kitchenette {

template <class T> struct BlasFunctions {
    void (*gemm)(char*, char*, int*, int*, int*, T*, T*, int*, T*, int*, T*, T*, int*);
    void (*syrk)(char*, char*, int*, int*, T*, T*, int*, T*, T*, int*);
    void (*trsm)(char*, char*, char*, char*, int*, int*, T*, T*, int*, T*, int*);
    void (*potrf)(char*, int*, T*, int*, int*);
};

struct Blas {
    BlasFunctions<float> in_float32;
    BlasFunctions<double> in_double;

    template <class T> const BlasFunctions<T>& of() const {
        if constexpr (std::is_same_v<T, float>)
            return in_float32;
        else
            return in_double;
    }
};

}  // namespace kitchenette
