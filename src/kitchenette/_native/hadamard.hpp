// Butterfly networks on vectors: the Walsh-Hadamard transform and butterflies of rotations.
//
// All stages run from the largest stride to the smallest, in every code path and for every
// instruction set, so that the result of a row is bitwise the same in all of them.
//
// Two layouts share this code. In the "lanes" layout a vector holds one coordinate of
// several rows, so every stage is a plain addition of vectors. In the "row" layout a
// vector holds consecutive coordinates of one row, and the last stages work inside it.
#pragma once

#include "simd.hpp"

#if defined(__clang__)
#define KITCHENETTE_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define KITCHENETTE_UNROLL _Pragma("GCC unroll 16")
#else
#define KITCHENETTE_UNROLL
#endif

namespace kitchenette::KITCHENETTE_VARIANT {

// ---------------------------------------------------------------- one butterfly

// (a, b) -> (a + b, a - b): Sylvester's Hadamard matrix.
template <class T> struct SumDifference {
    KITCHENETTE_INLINE void operator()(Vec<T>& a, Vec<T>& b, Size, Size) const {
        const Vec<T> sum = a + b;
        b = a - b;
        a = sum;
    }
    // What the stages inside a vector need, for the vector that starts at coordinate i.
    struct Inside {};
    KITCHENETTE_INLINE Inside inside_at(Size) const { return {}; }
    // The stage of stride H < lanes inside a vector.
    template <int H> KITCHENETTE_INLINE Vec<T> inside(Vec<T> a, const Inside&) const {
        return mul_add(a, alternating<H>(), swap_lanes<H>(a));
    }

  private:
    template <int H> static KITCHENETTE_INLINE Vec<T> alternating() {
        Vec<T> signs = zero<T>();
        for (int i = 0; i < lanes<T>; ++i) signs.set(i, (i & H) ? T{-1} : T{1});
        return signs;
    }
};

// (a, b) -> (c a + s b, c b - s a) with an angle for each pair. The pair (i, i + h) of a
// block uses the entry h + i mod h of the block's two tables of `block` numbers.
template <class T, bool RowLayout> struct Rotation {
    const T* cosines;
    const T* sines;
    Size block;

    KITCHENETTE_INLINE Size entry(Size h, Size i) const {
        return (i & ~(block - 1)) + h + (i & (h - 1));
    }

    KITCHENETTE_INLINE void operator()(Vec<T>& a, Vec<T>& b, Size h, Size i) const {
        const Size at = entry(h, i);
        const Vec<T> c = RowLayout ? load(cosines + at) : broadcast(cosines[at]);
        const Vec<T> s = RowLayout ? load(sines + at) : broadcast(sines[at]);
        const Vec<T> upper = mul_add(s, b, c * a);
        b = mul_add(zero<T>() - s, a, c * b);
        a = upper;
    }
    // The factors of all stages inside a vector, which are the same for all vectors of a block.
    struct Inside {
        Vec<T> c[4], s[4];  // of the strides 1, 2, 4 and 8
    };
    KITCHENETTE_INLINE Inside inside_at(Size i) const {
        Inside factors;
        KITCHENETTE_UNROLL
        for (int stage = 0; stage < 4; ++stage) {
            const Size h = Size{1} << stage;
            factors.c[stage] = factors.s[stage] = zero<T>();
            if (h >= lanes<T> || h >= block) continue;  // there is no such stage
            for (int lane = 0; lane < lanes<T>; ++lane) {
                const Size at = entry(h, i + lane);
                factors.c[stage].set(lane, cosines[at]);
                factors.s[stage].set(lane, (lane & h) ? -sines[at] : sines[at]);
            }
        }
        return factors;
    }
    template <int H> KITCHENETTE_INLINE Vec<T> inside(Vec<T> a, const Inside& factors) const {
        constexpr int stage = H == 1 ? 0 : H == 2 ? 1 : H == 4 ? 2 : 3;
        return mul_add(factors.s[stage], swap_lanes<H>(a), factors.c[stage] * a);
    }
};

// ---------------------------------------------------------------- several stages at once

// The stages of strides (Radix/2) q, ..., q on Radix vectors whose first coordinates lie
// q apart; `first` is the coordinate of v[0].
template <int Radix, class T, class Butterfly>
KITCHENETTE_INLINE void butterflies(Vec<T>* v, const Butterfly& butterfly, Size q, Size first) {
    KITCHENETTE_UNROLL
    for (int h = Radix / 2; h >= 1; h /= 2) {
        KITCHENETTE_UNROLL
        for (int k = 0; k < Radix; ++k) {
            if (!(k & h)) butterfly(v[k], v[k + h], h * q, first + k * q);
        }
    }
}

// One pass over the vectors [0, length): stages of strides (Radix/2) q ... q, in vectors.
// `unit` is the number of coordinates that a step from vector to vector makes.
template <int Radix, class T, class Butterfly, class Load>
KITCHENETTE_INLINE void pass(T* work, Size length, Size q, Size unit, Size offset,
                             const Butterfly& butterfly, const Load& load_vector) {
    constexpr int N = lanes<T>;
    for (Size base = 0; base < length; base += Radix * q) {
        for (Size j = base; j < base + q; ++j) {
            Vec<T> v[Radix];
            KITCHENETTE_UNROLL
            for (int k = 0; k < Radix; ++k) v[k] = load_vector(j + k * q);
            butterflies<Radix>(v, butterfly, q * unit, (offset + j) * unit);
            KITCHENETTE_UNROLL
            for (int k = 0; k < Radix; ++k) store(work + (j + k * q) * N, v[k]);
        }
    }
}

// A pass in place. It is not inlined, which keeps the code small and compilation fast.
template <int Radix, class T, class Butterfly>
KITCHENETTE_NOINLINE void pass(T* work, Size length, Size q, Size unit, Size offset,
                               const Butterfly& butterfly) {
    pass<Radix>(work, length, q, unit, offset, butterfly,
                [work](Size i) { return load(work + i * lanes<T>); });
}

// All stages of strides top, top/2, ..., last on the vectors [0, length), in as few
// passes as possible. `work` starts at vector number `offset` of its buffer.
template <class T, class Butterfly> void stages(T* work, Size length, Size top, Size last,
                                                Size unit, Size offset,
                                                const Butterfly& butterfly) {
    while (top >= last) {
        if (top >= 4 * last && top != 8 * last) {
            pass<8>(work, length, top / 4, unit, offset, butterfly);
            top /= 8;
        } else if (top >= 2 * last) {
            pass<4>(work, length, top / 2, unit, offset, butterfly);
            top /= 4;
        } else {
            pass<2>(work, length, top, unit, offset, butterfly);
            top /= 2;
        }
    }
}

// The number of vectors at which a depth-first recursion stops, which fit the first-level cache.
inline constexpr Size leaf = 128;

// Stages of strides top ... last on [0, length) depth first: a large range is split by
// one pass into eight that are finished one after the other, and `done(work, offset,
// length)` is called on every finished piece in order.
template <class T, class Butterfly, class Done>
void descend(T* work, Size length, Size top, Size last, Size unit, Size offset,
             const Butterfly& butterfly, const Done& done) {
    if (length <= leaf || top < 4 * last) {
        stages(work, length, top, last, unit, offset, butterfly);
        done(work, offset, length);
        return;
    }
    pass<8>(work, length, top / 4, unit, offset, butterfly);
    const Size part = top / 4;
    for (Size start = 0; start < length; start += part)
        descend(work + start * lanes<T>, part, top / 8, last, unit, offset + start, butterfly,
                done);
}

// The stages of strides below the number of lanes, inside one vector. `Whole` vectors belong to
// one transform; others hold several transforms of `block` coordinates.
template <bool Whole, class T, class Butterfly>
KITCHENETTE_INLINE Vec<T> inside_vector(Vec<T> a, Size block, const Butterfly& butterfly,
                                        const typename Butterfly::Inside& factors) {
    if constexpr (lanes<T> > 8)
        if (Whole || block > 8) a = butterfly.template inside<8>(a, factors);
    if constexpr (lanes<T> > 4)
        if (Whole || block > 4) a = butterfly.template inside<4>(a, factors);
    if constexpr (lanes<T> > 2)
        if (Whole || block > 2) a = butterfly.template inside<2>(a, factors);
    if (Whole || block > 1) a = butterfly.template inside<1>(a, factors);
    return a;
}

// ---------------------------------------------------------------- the last stages

// The stages of strides 4, 2 and 1 (in vectors) of a transform of at least eight vectors are fused
// with the output of its results. The stages before end at this stride.
inline Size strides_left(Size span) {
    return span >= 8 ? 8 : 1;
}

// Finishes all stages of a piece in the row layout and passes each vector to
// `done(number, vector)`.
template <class T, class Butterfly, class Done>
KITCHENETTE_INLINE void finish_rows(const T* piece, Size offset, Size length, Size left, Size block,
                                    const Butterfly& butterfly, const Done& done) {
    constexpr Size N = lanes<T>;
    auto factors = butterfly.inside_at(offset * N);
    const auto enter = [&](Size i) {  // with i, a new block may begin
        if (i > 0 && ((offset + i) * N & (block - 1)) == 0)
            factors = butterfly.inside_at((offset + i) * N);
    };
    if (left == 8) [[likely]] {
        for (Size i = 0; i < length; i += 8) {
            enter(i);
            Vec<T> v[8];
            KITCHENETTE_UNROLL
            for (int k = 0; k < 8; ++k) v[k] = load(piece + (i + k) * N);
            butterflies<8>(v, butterfly, N, (offset + i) * N);
            KITCHENETTE_UNROLL
            for (int k = 0; k < 8; ++k)
                done(offset + i + k, inside_vector<true>(v[k], block, butterfly, factors));
        }
        return;
    }
    // In short transforms fewer strides are left, and vectors are finished one by one.
    for (Size i = 0; i < length; ++i) {
        enter(i);
        done(offset + i, inside_vector<false>(load(piece + i * N), block, butterfly, factors));
    }
}

// ---------------------------------------------------------------- whole transforms

// `length` adjacent numbers that hold transforms of `block` numbers each, in place.
template <class T> void hadamard_row(T* x, Size length, Size block) {
    constexpr Size N = lanes<T>;
    const SumDifference<T> butterfly;
    const Size vectors = length / N, span = block / N;
    const Size left = strides_left(span);
    descend(x, vectors, span / 2, left, N, Size{0}, butterfly,
            [&](T* piece, Size offset, Size count) {
                finish_rows(piece, offset, count, left, block, butterfly,
                            [x](Size i, Vec<T> value) { store(x + i * N, value); });
            });
    for (Size h = block / 2; h >= 1 && vectors * N < length; h /= 2)
        for (Size i = vectors * N; i < length; ++i)
            if (!(i & h)) {
                const T a = x[i], b = x[i + h];
                x[i] = a + b;
                x[i + h] = a - b;
            }
}

// ---------------------------------------------------------------- strided coordinates

// One pass with runs of `run` adjacent numbers instead of single coordinates.
template <int Radix, class T>
void pass_runs(T* x, Size length, Size q, Size run, Size begin, Size end) {
    constexpr Size N = lanes<T>;
    const SumDifference<T> butterfly;
    for (Size base = 0; base < length; base += Radix * q) {
        T* part = x + base * run;
        const Size step = q * run;
        Size e = begin;
        for (; e + N <= end; e += N) {
            Vec<T> v[Radix];
            KITCHENETTE_UNROLL
            for (int k = 0; k < Radix; ++k) v[k] = load(part + k * step + e);
            butterflies<Radix>(v, butterfly, q, 0);
            KITCHENETTE_UNROLL
            for (int k = 0; k < Radix; ++k) store(part + k * step + e, v[k]);
        }
        for (; e < end; ++e)
            for (int h = Radix / 2; h >= 1; h /= 2)
                for (int k = 0; k < Radix; ++k)
                    if (!(k & h)) {
                        T& a = part[k * step + e];
                        T& b = part[(k + h) * step + e];
                        const T sum = a + b;
                        b = a - b;
                        a = sum;
                    }
    }
}

// `length` coordinates, each a run of `run` adjacent numbers, depth first.
template <class T> void hadamard_runs(T* x, Size length, Size run) {
    if (length >= 8) {
        const Size q = length / 8;
        pass_runs<8>(x, length, q, run, 0, q * run);
        if (q > 1)
            for (int k = 0; k < 8; ++k) hadamard_runs(x + k * q * run, q, run);
    } else if (length == 4) {
        pass_runs<4>(x, length, Size{1}, run, 0, run);
    } else if (length == 2) {
        pass_runs<2>(x, length, Size{1}, run, 0, run);
    }
}

// The columns [begin, end) of a matrix of `length` rows: through a small copy, so that
// memory is read and written once.
template <class T>
void hadamard_columns(T* x, Size length, Size run, Size begin, Size end, T* scratch) {
    const Size width = end - begin;
    for (Size i = 0; i < length; ++i)
        std::memcpy(scratch + i * width, x + i * run + begin, sizeof(T) * width);
    hadamard_runs(scratch, length, width);
    for (Size i = 0; i < length; ++i)
        std::memcpy(x + i * run + begin, scratch + i * width, sizeof(T) * width);
}

}  // namespace kitchenette::KITCHENETTE_VARIANT
