// Portable vectors. All compiler-specific vector code is in this header.
//
// Everything in this header and in those that include it is compiled once per
// instruction set, each time inside its own namespace (KITCHENETTE_VARIANT), so
// that the linker never mixes code of one set into another. For the same reason
// these headers instantiate no templates of the standard library.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

#include "variants.hpp"

#ifndef KITCHENETTE_VARIANT
#error "KITCHENETTE_VARIANT names the instruction set this file is compiled for"
#endif

// With GNU vectors a Vec is a register; for other compilers it is an array, and performance
// depends on their automatic vectorization.
#if (defined(__GNUC__) || defined(__clang__)) && !defined(KITCHENETTE_PLAIN_VECTORS)
#define KITCHENETTE_GNU_VECTORS 1
#endif

// KITCHENETTE_VECTOR_BYTES forces a width, so that the code for wide registers can be
// tested on machines without them; vectors are then split by the compiler.
#if defined(KITCHENETTE_GNU_VECTORS) && !defined(KITCHENETTE_VECTOR_BYTES)
#if defined(__AVX512F__)
#define KITCHENETTE_X86_BYTES 64
#elif defined(__AVX2__)
#define KITCHENETTE_X86_BYTES 32
#elif defined(__SSE2__)
#define KITCHENETTE_X86_BYTES 16
#endif
#endif

namespace kitchenette::KITCHENETTE_VARIANT {

#if defined(KITCHENETTE_VECTOR_BYTES)
inline constexpr int vector_bytes = KITCHENETTE_VECTOR_BYTES;
#elif defined(__AVX512F__)
inline constexpr int vector_bytes = 64;
#elif defined(__AVX2__)
inline constexpr int vector_bytes = 32;
#else
inline constexpr int vector_bytes = 16;
#endif

template <class T> inline constexpr int lanes = vector_bytes / static_cast<int>(sizeof(T));

template <class T> struct BitsOf;
template <> struct BitsOf<float> {
    using type = std::uint32_t;
};
template <> struct BitsOf<double> {
    using type = std::uint64_t;
};

template <int... I> struct Indices {};

#if defined(KITCHENETTE_GNU_VECTORS)

template <class T> struct Vec {
    static constexpr int size = lanes<T>;
    typedef T raw_type __attribute__((vector_size(sizeof(T) * size)));
    raw_type raw;

    KITCHENETTE_INLINE T operator[](int i) const { return raw[i]; }
    KITCHENETTE_INLINE void set(int i, T value) { raw[i] = value; }
};

#define KITCHENETTE_BINARY(op)                                                     \
    template <class T> KITCHENETTE_INLINE Vec<T> operator op(Vec<T> a, Vec<T> b) { \
        return {a.raw op b.raw};                                                   \
    }
KITCHENETTE_BINARY(+)
KITCHENETTE_BINARY(-)
KITCHENETTE_BINARY(*)
KITCHENETTE_BINARY(^)
KITCHENETTE_BINARY(|)
KITCHENETTE_BINARY(&)
#undef KITCHENETTE_BINARY

template <class T> KITCHENETTE_INLINE Vec<T> operator-(Vec<T> a) {
    return {-a.raw};
}

template <class T> KITCHENETTE_INLINE Vec<T> operator<<(Vec<T> a, int bits) {
    return {a.raw << bits};
}

template <class T> KITCHENETTE_INLINE Vec<T> broadcast(T value) {
    return {value - typename Vec<T>::raw_type{}};  // lane-wise; compiles to one broadcast
}

template <class To, class From> KITCHENETTE_INLINE Vec<To> bit_cast(Vec<From> a) {
    static_assert(sizeof(To) == sizeof(From));
    return {reinterpret_cast<typename Vec<To>::raw_type>(a.raw)};
}

#if defined(__clang__) || __GNUC__ >= 12
template <int... I, class T> KITCHENETTE_INLINE Vec<T> shuffle(Vec<T> a, Vec<T> b, Indices<I...>) {
    return {__builtin_shufflevector(a.raw, b.raw, I...)};
}
#else
template <int... I, class T> KITCHENETTE_INLINE Vec<T> shuffle(Vec<T> a, Vec<T> b, Indices<I...>) {
    typedef typename BitsOf<T>::type mask_type __attribute__((vector_size(sizeof(T) * lanes<T>)));
    return {__builtin_shuffle(a.raw, b.raw, mask_type{I...})};
}
#endif

// A mask of all ones in lanes where |a| <= bound does not hold, including NaN.
template <class T> KITCHENETTE_INLINE Vec<typename BitsOf<T>::type> outside(Vec<T> a, T bound) {
    const auto inside = (a.raw <= broadcast(bound).raw) & (a.raw >= broadcast(-bound).raw);
    using Mask = Vec<typename BitsOf<T>::type>;
    return {~reinterpret_cast<typename Mask::raw_type>(inside)};
}

#else  // plain arrays

template <class T> struct Vec {
    static constexpr int size = lanes<T>;
    T raw[size];

    T operator[](int i) const { return raw[i]; }
    void set(int i, T value) { raw[i] = value; }
};

template <class T, class F> KITCHENETTE_INLINE Vec<T> lanewise(F f) {
    Vec<T> out;
    for (int i = 0; i < lanes<T>; ++i) out.raw[i] = static_cast<T>(f(i));
    return out;
}

#define KITCHENETTE_BINARY(op)                                                     \
    template <class T> KITCHENETTE_INLINE Vec<T> operator op(Vec<T> a, Vec<T> b) { \
        return lanewise<T>([&](int i) { return a.raw[i] op b.raw[i]; });           \
    }
KITCHENETTE_BINARY(+)
KITCHENETTE_BINARY(-)
KITCHENETTE_BINARY(*)
KITCHENETTE_BINARY(^)
KITCHENETTE_BINARY(|)
KITCHENETTE_BINARY(&)
#undef KITCHENETTE_BINARY

template <class T> KITCHENETTE_INLINE Vec<T> operator-(Vec<T> a) {
    return lanewise<T>([&](int i) { return -a.raw[i]; });
}

template <class T> KITCHENETTE_INLINE Vec<T> operator<<(Vec<T> a, int bits) {
    return lanewise<T>([&](int i) { return a.raw[i] << bits; });
}

template <class T> KITCHENETTE_INLINE Vec<T> broadcast(T value) {
    return lanewise<T>([&](int) { return value; });
}

template <class To, class From> KITCHENETTE_INLINE Vec<To> bit_cast(Vec<From> a) {
    static_assert(sizeof(To) == sizeof(From));
    Vec<To> out;
    std::memcpy(&out, &a, sizeof(out));
    return out;
}

template <int... I, class T> KITCHENETTE_INLINE Vec<T> shuffle(Vec<T> a, Vec<T> b, Indices<I...>) {
    constexpr int pick[] = {I...};
    return lanewise<T>(
        [&](int i) { return pick[i] < lanes<T> ? a.raw[pick[i]] : b.raw[pick[i] - lanes<T>]; });
}

template <class T> KITCHENETTE_INLINE Vec<typename BitsOf<T>::type> outside(Vec<T> a, T bound) {
    using Bits = typename BitsOf<T>::type;
    return lanewise<Bits>([&](int i) {
        return a.raw[i] <= bound && a.raw[i] >= -bound ? Bits{0} : static_cast<Bits>(~Bits{0});
    });
}

#endif

template <class T> KITCHENETTE_INLINE Vec<T> zero() {
    return broadcast(T{0});
}

template <class T> KITCHENETTE_INLINE Vec<T> load(const T* p) {
    Vec<T> out;
    std::memcpy(&out, p, sizeof(out));
    return out;
}

template <class T> KITCHENETTE_INLINE void store(T* p, Vec<T> a) {
    std::memcpy(p, &a, sizeof(a));
}

// A non-temporal store, which bypasses the caches, to an address aligned to the vector's size.
// Other threads see it after publish().
template <class T> KITCHENETTE_INLINE void stream(T* p, Vec<T> a) {
#if KITCHENETTE_X86_BYTES == 64
    _mm512_stream_si512((__m512i*)p, (__m512i)a.raw);
#elif KITCHENETTE_X86_BYTES == 32
    _mm256_stream_si256((__m256i*)p, (__m256i)a.raw);
#elif KITCHENETTE_X86_BYTES == 16
    _mm_stream_si128((__m128i*)p, (__m128i)a.raw);
#else
    store(p, a);
#endif
}

KITCHENETTE_INLINE void publish() {
#if defined(KITCHENETTE_X86_BYTES)
    _mm_sfence();
#endif
}

// Prefetches a cache line; the address need not be valid.
template <class T> KITCHENETTE_INLINE void prefetch(const T* p) {
#if defined(KITCHENETTE_GNU_VECTORS)
    __builtin_prefetch(p);
#else
    (void)p;
#endif
}

template <class Bits> KITCHENETTE_INLINE bool any(Vec<Bits> mask) {
#if KITCHENETTE_X86_BYTES == 64
    return _mm512_test_epi64_mask((__m512i)mask.raw, (__m512i)mask.raw) != 0;
#elif KITCHENETTE_X86_BYTES == 32
    return !_mm256_testz_si256((__m256i)mask.raw, (__m256i)mask.raw);
#elif KITCHENETTE_X86_BYTES == 16
    return _mm_movemask_epi8((__m128i)mask.raw) != 0;
#else
    Bits all = 0;
    for (int i = 0; i < lanes<Bits>; ++i) all |= mask[i];
    return all != 0;
#endif
}

// a * b + c, rounded once if the instruction set has fused multiply-add. Contraction by the
// compiler is off, so multiplications and additions are fused only here, and the result of a row
// does not depend on the loop that computes it.
KITCHENETTE_INLINE Vec<float> mul_add(Vec<float> a, Vec<float> b, Vec<float> c) {
#if KITCHENETTE_X86_BYTES == 64
    return {(Vec<float>::raw_type)_mm512_fmadd_ps((__m512)a.raw, (__m512)b.raw, (__m512)c.raw)};
#elif KITCHENETTE_X86_BYTES == 32
    return {(Vec<float>::raw_type)_mm256_fmadd_ps((__m256)a.raw, (__m256)b.raw, (__m256)c.raw)};
#elif defined(__ARM_FEATURE_FMA) || defined(__FMA__)
    for (int i = 0; i < lanes<float>; ++i) c.raw[i] = std::fma(a.raw[i], b.raw[i], c.raw[i]);
    return c;
#else
    return a * b + c;
#endif
}

KITCHENETTE_INLINE Vec<double> mul_add(Vec<double> a, Vec<double> b, Vec<double> c) {
#if KITCHENETTE_X86_BYTES == 64
    return {(Vec<double>::raw_type)_mm512_fmadd_pd((__m512d)a.raw, (__m512d)b.raw, (__m512d)c.raw)};
#elif KITCHENETTE_X86_BYTES == 32
    return {(Vec<double>::raw_type)_mm256_fmadd_pd((__m256d)a.raw, (__m256d)b.raw, (__m256d)c.raw)};
#elif defined(__ARM_FEATURE_FMA) || defined(__FMA__)
    for (int i = 0; i < lanes<double>; ++i) c.raw[i] = std::fma(a.raw[i], b.raw[i], c.raw[i]);
    return c;
#else
    return a * b + c;
#endif
}

// ---------------------------------------------------------------- shuffles

namespace detail {

// The lists of lane numbers that the shuffles below need, built from a rule.
template <class Rule, int N, int... I> struct Build : Build<Rule, N - 1, Rule::at(N - 1), I...> {};
template <class Rule, int... I> struct Build<Rule, 0, I...> {
    using type = Indices<I...>;
};

template <int H> struct Partner {
    static constexpr int at(int i) { return i ^ H; }
};

// Interleave the low (or high) halves of every run of 2 * Half lanes, in pieces of
// `Piece` lanes: the unpack instructions for Piece 1, 128-bit shuffles for larger pieces.
template <int N, int Half, int Piece, bool High> struct Unpack {
    static constexpr int at(int i) {
        const int run = i / (2 * Half) * (2 * Half);
        const int piece = (i - run) / Piece;
        const int source = run + (High ? Half : 0) + piece / 2 * Piece + i % Piece;
        return piece % 2 ? source + N : source;
    }
};

}  // namespace detail

// Lane i of the result is lane i ^ H of a.
template <int H, class T> KITCHENETTE_INLINE Vec<T> swap_lanes(Vec<T> a) {
    return shuffle(a, a, typename detail::Build<detail::Partner<H>, lanes<T>>::type{});
}

template <int Half, int Piece, bool High, class T>
KITCHENETTE_INLINE Vec<T> unpack(Vec<T> a, Vec<T> b) {
    using Rule = detail::Unpack<lanes<T>, Half, Piece, High>;
    return shuffle(a, b, typename detail::Build<Rule, lanes<T>>::type{});
}

// The transpose out[r][c] = in[c][r] of a square of lanes<T> vectors: first within 128-bit
// quarters, where shuffles are cheap, then of the quarters.
template <class T> KITCHENETTE_INLINE void transpose(Vec<T>* v) {
    constexpr int N = lanes<T>;
    constexpr int quarter = 16 / static_cast<int>(sizeof(T));
    Vec<T> w[N];
    // One round of a 128-bit transpose: pieces of `piece` lanes of vectors
    // i and i + step move side by side.
    for (int i = 0; i < N; i += 2) {
        w[i] = unpack<quarter / 2, 1, false>(v[i], v[i + 1]);
        w[i + 1] = unpack<quarter / 2, 1, true>(v[i], v[i + 1]);
    }
    if constexpr (quarter == 4) {
        for (int i = 0; i < N; i += 4) {
            v[i] = unpack<2, 2, false>(w[i], w[i + 2]);
            v[i + 1] = unpack<2, 2, true>(w[i], w[i + 2]);
            v[i + 2] = unpack<2, 2, false>(w[i + 1], w[i + 3]);
            v[i + 3] = unpack<2, 2, true>(w[i + 1], w[i + 3]);
        }
    } else {
        for (int i = 0; i < N; ++i) v[i] = w[i];
    }
    // Now vector q * quarter + j holds, in its 128-bit part p, the rows
    // p * quarter + j of columns q * quarter ...: transpose the parts.
    if constexpr (N == 2 * quarter) {
        for (int j = 0; j < quarter; ++j) {
            const Vec<T> a = v[j], b = v[j + quarter];
            v[j] = unpack<N / 2, quarter, false>(a, b);
            v[j + quarter] = unpack<N / 2, quarter, true>(a, b);
        }
    } else if constexpr (N == 4 * quarter) {
        for (int j = 0; j < quarter; ++j) {
            const Vec<T> a = v[j], b = v[j + quarter], c = v[j + 2 * quarter],
                         d = v[j + 3 * quarter];
            const Vec<T> ac_low = unpack<N / 2, quarter, false>(a, c);
            const Vec<T> ac_high = unpack<N / 2, quarter, true>(a, c);
            const Vec<T> bd_low = unpack<N / 2, quarter, false>(b, d);
            const Vec<T> bd_high = unpack<N / 2, quarter, true>(b, d);
            v[j] = unpack<N / 2, quarter, false>(ac_low, bd_low);
            v[j + quarter] = unpack<N / 2, quarter, true>(ac_low, bd_low);
            v[j + 2 * quarter] = unpack<N / 2, quarter, false>(ac_high, bd_high);
            v[j + 3 * quarter] = unpack<N / 2, quarter, true>(ac_high, bd_high);
        }
    }
}

// (a0 a1 ...), (b0 b1 ...) -> (a0 b0 a1 b1 ...), continued in the second vector.
template <class T> KITCHENETTE_INLINE void interleave(Vec<T>& a, Vec<T>& b) {
    const Vec<T> low = unpack<lanes<T> / 2, 1, false>(a, b);
    const Vec<T> high = unpack<lanes<T> / 2, 1, true>(a, b);
    a = low;
    b = high;
}

}  // namespace kitchenette::KITCHENETTE_VARIANT
