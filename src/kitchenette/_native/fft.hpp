// Fourier transforms of several rows at a time, without bit reversal.
//
// A vector holds one coordinate of several rows, so every step is the same for each lane
// and the result of a row does not depend on the other rows.
//
// The transform of x_0 ... x_{n-1} is the polynomial x_0 + x_1 z + ... at the n roots of
// z^n = 1, computed by halving the modulus: a polynomial modulo z^n - r^2 is reduced modulo
// z^{n/2} - r and z^{n/2} + r, and its halves (low, high) become low + r high and low - r high.
// Number the parts of every level from zero. Part b has the modulus z^n - exp(2 pi i phi(b)),
// where phi(b) is the binary fraction whose digits are those of b, the last one first: the
// same number on every level. So one table serves all levels and lengths. Entry b holds
//
//   w1 = exp(pi i phi(b)),  w2 = sqrt(w1),  w3 = w1 w2
//
// for splitting part b twice, into 4b ... 4b + 3. The spectrum is in the order of the last
// level's parts. The inverse takes the same order, so products of spectra need no reordering.
//
// A real polynomial modulo z^n - 1 is split into a real one modulo z^{n/2} - 1 and one modulo
// z^{n/2} + 1. The latter is equivalent to a complex polynomial modulo z^{n/4} - i, part 2, whose
// real and imaginary parts are its two halves in memory. So positions 0 and 1 of the result of a
// real transform are real, and for every power of two n >= 2 the positions [n, 2n) hold n/2 real
// parts followed by the n/2 imaginary parts.
#pragma once

#include "hadamard.hpp"

namespace kitchenette::KITCHENETTE_VARIANT {

inline constexpr Size numbers_per_root = 6;
inline constexpr Size part_of_i = 2;  // phi(2) = 1/4

// ---------------------------------------------------------------- complex vectors

template <class T> struct Complex {
    Vec<T> re, im;
};

template <class T> KITCHENETTE_INLINE Complex<T> operator+(Complex<T> a, Complex<T> b) {
    return {a.re + b.re, a.im + b.im};
}

template <class T> KITCHENETTE_INLINE Complex<T> operator-(Complex<T> a, Complex<T> b) {
    return {a.re - b.re, a.im - b.im};
}

template <class T> KITCHENETTE_INLINE Complex<T> operator*(Complex<T> a, Complex<T> b) {
    return {mul_add(a.re, b.re, -(a.im * b.im)), mul_add(a.re, b.im, a.im * b.re)};
}

template <class T> KITCHENETTE_INLINE Complex<T> conjugate(Complex<T> a) {
    return {a.re, -a.im};
}

template <class T> KITCHENETTE_INLINE Complex<T> times_i(Complex<T> a) {
    return {-a.im, a.re};
}

template <class T> KITCHENETTE_INLINE Complex<T> load(const T* re, const T* im) {
    return {load(re), load(im)};
}

template <class T> KITCHENETTE_INLINE void store(T* re, T* im, Complex<T> a) {
    store(re, a.re);
    store(im, a.im);
}

template <class T> KITCHENETTE_INLINE Complex<T> broadcast(const T* re, const T* im) {
    return {broadcast(*re), broadcast(*im)};
}

// ---------------------------------------------------------------- one part

// Splits a part of 4 q numbers in four; `root` is its entry in the table. `put(re, im, value)`
// stores a result whose place is (re, im).
template <class T, class Put>
KITCHENETTE_INLINE void split_in_four(T* re, T* im, Size q, const T* root, const Put& put) {
    constexpr Size N = lanes<T>;
    const auto w1 = broadcast(root, root + 1), w2 = broadcast(root + 2, root + 3),
               w3 = broadcast(root + 4, root + 5);
    for (Size i = 0; i < q * N; i += N) {
        T *re1 = re + q * N, *re2 = re1 + q * N, *re3 = re2 + q * N;
        T *im1 = im + q * N, *im2 = im1 + q * N, *im3 = im2 + q * N;
        const auto x0 = load(re + i, im + i), x1 = w2 * load(re1 + i, im1 + i),
                   x2 = w1 * load(re2 + i, im2 + i), x3 = w3 * load(re3 + i, im3 + i);
        const auto a = x0 + x2, b = x0 - x2, c = x1 + x3, d = times_i(x1 - x3);
        put(re + i, im + i, a + c);
        put(re1 + i, im1 + i, a - c);
        put(re2 + i, im2 + i, b + d);
        put(re3 + i, im3 + i, b - d);
    }
}

// The inverse of split_in_four, times four.
template <class T> KITCHENETTE_INLINE void join_four(T* re, T* im, Size q, const T* root) {
    constexpr Size N = lanes<T>;
    const auto w1 = conjugate(broadcast(root, root + 1)),
               w2 = conjugate(broadcast(root + 2, root + 3)),
               w3 = conjugate(broadcast(root + 4, root + 5));
    for (Size i = 0; i < q * N; i += N) {
        T *re1 = re + q * N, *re2 = re1 + q * N, *re3 = re2 + q * N;
        T *im1 = im + q * N, *im2 = im1 + q * N, *im3 = im2 + q * N;
        const auto z0 = load(re + i, im + i), z1 = load(re1 + i, im1 + i),
                   z2 = load(re2 + i, im2 + i), z3 = load(re3 + i, im3 + i);
        const auto a = z0 + z1, b = z2 + z3, c = z0 - z1, d = times_i(z2 - z3);
        store(re + i, im + i, a + b);
        store(re1 + i, im1 + i, w2 * (c - d));
        store(re2 + i, im2 + i, w1 * (a - b));
        store(re3 + i, im3 + i, w3 * (c + d));
    }
}

// Splits a part of 2 q numbers in two.
template <class T> KITCHENETTE_INLINE void split_in_two(T* re, T* im, Size q, const T* root) {
    constexpr Size N = lanes<T>;
    const auto w1 = broadcast(root, root + 1);
    T *re1 = re + q * N, *im1 = im + q * N;
    for (Size i = 0; i < q * N; i += N) {
        const auto x0 = load(re + i, im + i), x1 = w1 * load(re1 + i, im1 + i);
        store(re + i, im + i, x0 + x1);
        store(re1 + i, im1 + i, x0 - x1);
    }
}

template <class T> KITCHENETTE_INLINE void join_two(T* re, T* im, Size q, const T* root) {
    constexpr Size N = lanes<T>;
    const auto w1 = conjugate(broadcast(root, root + 1));
    T *re1 = re + q * N, *im1 = im + q * N;
    for (Size i = 0; i < q * N; i += N) {
        const auto z0 = load(re + i, im + i), z1 = load(re1 + i, im1 + i);
        store(re + i, im + i, z0 + z1);
        store(re1 + i, im1 + i, w1 * (z0 - z1));
    }
}

// ---------------------------------------------------------------- complex transforms

// The length up to which all levels are computed breadth first, within the first-level cache.
inline constexpr Size complex_leaf = 256;

KITCHENETTE_INLINE bool is_power_of_four(Size n) {
    return (n & 0x5555555555555555) != 0;  // for n a power of two
}

template <class T> struct Store {
    KITCHENETTE_INLINE void operator()(T* re, T* im, Complex<T> value) const {
        store(re, im, value);
    }
};

// Transforms part b of n numbers, depth first. The last level passes its results to `put`, which
// saves a separate pass for their further processing. The table needs (b + 1) n / 4 entries.
template <class T, class Put>
void evaluate(T* re, T* im, Size n, Size b, const T* roots, const Put& put) {
    constexpr Size N = lanes<T>;
    if (n == 1) {
        put(re, im, load(re, im));
    } else if (!is_power_of_four(n)) {
        const Size q = n / 2;
        split_in_two(re, im, q, roots + numbers_per_root * b);
        for (Size k = 0; k < 2; ++k)
            evaluate(re + k * q * N, im + k * q * N, q, 2 * b + k, roots, put);
    } else if (n > complex_leaf) {
        const Size q = n / 4;
        split_in_four(re, im, q, roots + numbers_per_root * b, Store<T>());
        for (Size k = 0; k < 4; ++k)
            evaluate(re + k * q * N, im + k * q * N, q, 4 * b + k, roots, put);
    } else {
        for (Size q = n / 4, parts = 1; q > 1; q /= 4, parts *= 4)
            for (Size k = 0; k < parts; ++k)
                split_in_four(re + 4 * q * k * N, im + 4 * q * k * N, q,
                              roots + numbers_per_root * (b * parts + k), Store<T>());
        for (Size k = 0; k < n / 4; ++k)
            split_in_four(re + 4 * k * N, im + 4 * k * N, Size{1},
                          roots + numbers_per_root * (b * (n / 4) + k), put);
    }
}

// The inverse of evaluate, times n.
template <class T> void interpolate(T* re, T* im, Size n, Size b, const T* roots) {
    constexpr Size N = lanes<T>;
    if (!is_power_of_four(n)) {
        const Size q = n / 2;
        for (Size k = 0; k < 2; ++k)
            interpolate(re + k * q * N, im + k * q * N, q, 2 * b + k, roots);
        join_two(re, im, q, roots + numbers_per_root * b);
    } else if (n > complex_leaf) {
        const Size q = n / 4;
        for (Size k = 0; k < 4; ++k)
            interpolate(re + k * q * N, im + k * q * N, q, 4 * b + k, roots);
        join_four(re, im, q, roots + numbers_per_root * b);
    } else {
        for (Size q = 1, parts = n / 4; parts >= 1; q *= 4, parts /= 4)
            for (Size k = 0; k < parts; ++k)
                join_four(re + 4 * q * k * N, im + 4 * q * k * N, q,
                          roots + numbers_per_root * (b * parts + k));
    }
}

// The same, where parts of at most `longest` numbers, a power of four, are made by
// `part(re, im, n, b)`, in the order in which they are joined.
template <class T, class Part>
void interpolate(T* re, T* im, Size n, Size b, const T* roots, Size longest, const Part& part) {
    constexpr Size N = lanes<T>;
    if (n <= longest) return part(re, im, n, b);
    const bool four = is_power_of_four(n);
    const Size count = four ? 4 : 2, q = n / count;
    for (Size k = 0; k < count; ++k)
        interpolate(re + k * q * N, im + k * q * N, q, count * b + k, roots, longest, part);
    if (four)
        join_four(re, im, q, roots + numbers_per_root * b);
    else
        join_two(re, im, q, roots + numbers_per_root * b);
}

// ---------------------------------------------------------------- real transforms

template <class T> KITCHENETTE_INLINE void sum_and_difference(T* x, T* y) {
    const Vec<T> a = load(x), b = load(y);
    store(x, a + b);
    store(y, a - b);
}

// The transform of n real numbers, n a power of two. `put` stores complex results as in evaluate;
// positions 0 and 1 are real and left to the caller.
template <class T, class Put> void evaluate_real(T* x, Size n, const T* roots, const Put& put) {
    constexpr Size N = lanes<T>;
    for (; n >= 4; n /= 4) {
        const Size q = n / 4;
        T *x1 = x + q * N, *x2 = x1 + q * N, *x3 = x2 + q * N;
        for (Size i = 0; i < q * N; i += N) {
            const Vec<T> a = load(x + i) + load(x2 + i), b = load(x1 + i) + load(x3 + i);
            store(x2 + i, load(x + i) - load(x2 + i));
            store(x3 + i, load(x1 + i) - load(x3 + i));
            store(x + i, a + b);
            store(x1 + i, a - b);
        }
        evaluate(x2, x3, q, part_of_i, roots, put);
        if (q >= 2) evaluate(x1, x1 + q / 2 * N, q / 2, part_of_i, roots, put);
    }
    if (n == 2) sum_and_difference(x, x + N);
}

// Joins the four parts of the inverse of evaluate_real: q real numbers, q / 2 complex ones that
// stand for as many real ones as the first, and q complex ones.
template <class T> KITCHENETTE_INLINE void join_real(T* x, Size q) {
    constexpr Size N = lanes<T>;
    T *x1 = x + q * N, *x2 = x1 + q * N, *x3 = x2 + q * N;
    // The inverse of m / 2 complex numbers, which stand for m real ones, is scaled by m / 2 only.
    const Vec<T> two = broadcast(T{2}), weight = broadcast(q >= 2 ? T{2} : T{1});
    for (Size i = 0; i < q * N; i += N) {
        const Vec<T> c = load(x + i), d = weight * load(x1 + i);
        const Vec<T> a = c + d, b = c - d;
        const Vec<T> re = two * load(x2 + i), im = two * load(x3 + i);
        store(x + i, a + re);
        store(x1 + i, b + im);
        store(x2 + i, a - re);
        store(x3 + i, b - im);
    }
}

// The inverse of evaluate_real, times n.
template <class T> void interpolate_real(T* x, Size n, const T* roots) {
    constexpr Size N = lanes<T>;
    if (n == 2) sum_and_difference(x, x + N);
    if (n < 4) return;
    const Size q = n / 4;
    T *x1 = x + q * N, *x2 = x1 + q * N, *x3 = x2 + q * N;
    interpolate_real(x, q, roots);
    if (q >= 2) interpolate(x1, x1 + q / 2 * N, q / 2, part_of_i, roots);
    interpolate(x2, x3, q, part_of_i, roots);
    join_real(x, q);
}

// The same, where real parts of at most twice `longest` numbers are made by `real(x, n)`, and
// complex ones of at most `longest` by `part(re, im, n, b)`.
template <class T, class Real, class Part> void interpolate_real(T* x, Size n, const T* roots,
                                                                 Size longest, const Real& real,
                                                                 const Part& part) {
    constexpr Size N = lanes<T>;
    if (n <= 2 * longest) return real(x, n);
    const Size q = n / 4;
    T *x1 = x + q * N, *x2 = x1 + q * N, *x3 = x2 + q * N;
    interpolate_real(x, q, roots, longest, real, part);
    interpolate(x1, x1 + q / 2 * N, q / 2, part_of_i, roots, longest, part);
    interpolate(x2, x3, q, part_of_i, roots, longest, part);
    join_real(x, q);
}

// Calls `real` and `part` likewise for all parts of a spectrum, and joins nothing.
template <class T, class Real, class Part>
void visit_parts(T* x, Size n, Size longest, const Real& real, const Part& part) {
    constexpr Size N = lanes<T>;
    const Size first = std::min(n, 2 * longest);
    real(x, first);
    for (Size start = first; start < n; start *= 2) {
        const Size half = start / 2, count = half / longest;
        for (Size k = 0; k < count; ++k) {
            T* re = x + (start + k * longest) * N;
            part(re, re + half * N, longest, part_of_i * count + k);
        }
    }
}

}  // namespace kitchenette::KITCHENETTE_VARIANT
