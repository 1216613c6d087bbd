// Cosine, sine and exponential of vectors.
//
// The polynomials are minimax approximations (Remez) on the reduced interval, of
// degree high enough that rounding dominates: below 3e-7 absolute in float32 and
// 1e-15 in float64 for cosine and sine.
#pragma once

#include <cmath>

#include "simd.hpp"

namespace kitchenette::KITCHENETTE_VARIANT {

// Constants of the reductions. pi and log 2 are split so that the product of a
// leading part with the integers that occur is exact (Cody and Waite), with or
// without fused multiply-add.
template <class T> struct Constants;

template <> struct Constants<float> {
    static constexpr float largest_angle = 12800.0f;  // k = round(z / pi) below 2^12
    static constexpr float to_integer = 12582912.0f;  // 1.5 * 2^23
    static constexpr int top_bit = 31;
    static constexpr float inverse_pi = 0x1.45f306p-2f;
    static constexpr float pi[3] = {0x1.92p+1f, 0x1.fb4p-11f, 0x1.4442d2p-23f};
    static constexpr float sine[4] = {-0.16666657081426776887f, 0.0083330169169083199579f,
                                      -0.00019806587857959168139f, 2.5999938173139991058e-6f};
    static constexpr float cosine[5] = {-0.49999999548682213332f, 0.041666640687449515263f,
                                        -0.0013888402937207586092f, 0.000024761855169207648456f,
                                        -2.6076530061502612549e-7f};

    static constexpr float largest_exponent = 88.0f;  // exp overflows or underflows beyond
    static constexpr float inverse_log2 = 0x1.715476p+0f;
    static constexpr float log2[2] = {0x1.62e4p-1f, 0x1.7f7d1cp-20f};
    static constexpr int mantissa_bits = 23;
    static constexpr float exponential[5] = {0.50000000958030956923f, 0.1666651830873183219f,
                                             0.041666203889509270402f, 0.0083689533344538298047f,
                                             0.0013950615947640682253f};
};

template <> struct Constants<double> {
    static constexpr double largest_angle = 1.6e6;            // k below 2^19
    static constexpr double to_integer = 6755399441055744.0;  // 1.5 * 2^52
    static constexpr int top_bit = 63;
    static constexpr double inverse_pi = 0x1.45f306dc9c883p-2;
    static constexpr double pi[3] = {0x1.921fb544p+1, 0x1.0b4611a6p-33, 0x1.3198a2e037073p-68};
    static constexpr double sine[8] = {-0.16666666666666664544,    0.0083333333333331133963,
                                       -0.00019841269841185761592, 2.7557319207754836181e-6,
                                       -2.5052106603817579243e-8,  1.6058927698650668857e-10,
                                       -7.642709410131608634e-13,  2.7184598176689705686e-15};
    static constexpr double cosine[8] = {-0.49999999999999982466,   0.041666666666664362752,
                                         -0.0013888888888785402389, 0.000024801587279103840497,
                                         -2.7557316520887523691e-7, 2.0876567513257736275e-9,
                                         -1.146303320708332748e-11, 4.6102269410204186466e-14};

    static constexpr double largest_exponent = 708.0;
    static constexpr double inverse_log2 = 0x1.71547652b82fep+0;
    static constexpr double log2[2] = {0x1.62e42fefa38p-1, 0x1.ef35793c7673p-45};
    static constexpr int mantissa_bits = 52;
    static constexpr double exponential[11] = {
        0.49999999999999999965,    0.16666666666666684,      0.041666666666666725232,
        0.0083333333333166182613,  0.0013888888888858208651, 0.00019841269897361865127,
        0.00002480158737409253114, 2.7557233929607739283e-6, 2.7557233106712919197e-7,
        2.5112348395783278539e-8,  2.0927013276479229558e-9};
};

template <class T, int Terms>
KITCHENETTE_INLINE Vec<T> polynomial(const T (&coefficients)[Terms], Vec<T> x) {
    Vec<T> sum = broadcast(coefficients[Terms - 1]);
    for (int i = Terms - 2; i >= 0; --i) sum = mul_add(sum, x, broadcast(coefficients[i]));
    return sum;
}

// x = k period + remainder with a whole number k, where the period is the sum of its parts (Cody
// and Waite). Adding 1.5 * 2^(mantissa bits) rounds to an integer and leaves k in the last bits.
template <class T> struct Reduced {
    Vec<T> shifted;  // its last bits are k
    Vec<T> remainder;
};

template <class T, int Parts>
KITCHENETTE_INLINE Reduced<T> reduced(Vec<T> x, T inverse_period, const T (&parts)[Parts]) {
    const Vec<T> to_integer = broadcast(Constants<T>::to_integer);
    const Vec<T> shifted = mul_add(x, broadcast(inverse_period), to_integer);
    const Vec<T> k = shifted - to_integer;
    Vec<T> remainder = x;
    for (const T part : parts) remainder = mul_add(k, broadcast(-part), remainder);
    return {shifted, remainder};
}

// z = k pi + r with |r| <= pi / 2: cosine and sine of z are those of r times (-1)^k.
template <class T> struct HalfTurn {
    Vec<T> r;
    Vec<T> sign;  // -0.0 where k is odd, else 0.0: for exclusive or
};

template <class T> KITCHENETTE_INLINE HalfTurn<T> reduce_angle(Vec<T> z) {
    using C = Constants<T>;
    using Bits = typename BitsOf<T>::type;
    const Reduced<T> angle = reduced(z, C::inverse_pi, C::pi);
    return {angle.remainder, bit_cast<T>(bit_cast<Bits>(angle.shifted) << C::top_bit)};
}

template <class T> KITCHENETTE_INLINE Vec<T> flip(Vec<T> a, Vec<T> sign) {
    using Bits = typename BitsOf<T>::type;
    return bit_cast<T>(bit_cast<Bits>(a) ^ bit_cast<Bits>(sign));
}

// For |z| <= largest_angle. The results are scaled by `scale`.
template <class T>
KITCHENETTE_INLINE void fast_cosine_sine(Vec<T> z, Vec<T> scale, Vec<T>& cosine, Vec<T>& sine) {
    const HalfTurn<T> turn = reduce_angle(z);
    const Vec<T> r2 = turn.r * turn.r;
    const Vec<T> signed_scale = flip(scale, turn.sign);
    sine = signed_scale * mul_add(turn.r * r2, polynomial(Constants<T>::sine, r2), turn.r);
    cosine = signed_scale * mul_add(r2, polynomial(Constants<T>::cosine, r2), broadcast(T{1}));
}

template <class T> KITCHENETTE_INLINE Vec<T> fast_cosine(Vec<T> z, Vec<T> scale) {
    const HalfTurn<T> turn = reduce_angle(z);
    const Vec<T> r2 = turn.r * turn.r;
    return flip(scale, turn.sign) *
           mul_add(r2, polynomial(Constants<T>::cosine, r2), broadcast(T{1}));
}

// One lane whose angle is too large for the fast reduction: the C library reduces large angles
// exactly. A value that is not finite means that the projection overflowed.
template <class T> inline double wide_angle(T z, bool& overflow) {
    if (!std::isfinite(z)) overflow = true;
    return static_cast<double>(z);
}

// Any finite z. Only large lanes take the slow path, so that a value never depends on the
// other lanes of the vector.
template <class T> KITCHENETTE_INLINE void cosine_sine(Vec<T> z, Vec<T> scale, Vec<T>& cosine,
                                                       Vec<T>& sine, bool& overflow) {
    fast_cosine_sine(z, scale, cosine, sine);
    const auto large = outside(z, Constants<T>::largest_angle);
    if (any(large)) [[unlikely]] {
        for (int i = 0; i < lanes<T>; ++i) {
            if (!large[i]) continue;
            const double angle = wide_angle(z[i], overflow);
            cosine.set(i, static_cast<T>(std::cos(angle)) * scale[i]);
            sine.set(i, static_cast<T>(std::sin(angle)) * scale[i]);
        }
    }
}

template <class T> KITCHENETTE_INLINE Vec<T> cosine(Vec<T> z, Vec<T> scale, bool& overflow) {
    Vec<T> value = fast_cosine(z, scale);
    const auto large = outside(z, Constants<T>::largest_angle);
    if (any(large)) [[unlikely]] {
        for (int i = 0; i < lanes<T>; ++i) {
            if (large[i])
                value.set(i, static_cast<T>(std::cos(wide_angle(z[i], overflow))) * scale[i]);
        }
    }
    return value;
}

template <class T> KITCHENETTE_INLINE Vec<T> exponential(Vec<T> x, bool& overflow) {
    using C = Constants<T>;
    using Bits = typename BitsOf<T>::type;
    const auto [shifted, r] = reduced(x, C::inverse_log2, C::log2);
    const Vec<T> p = mul_add(r * r, polynomial(C::exponential, r), r) + broadcast(T{1});
    // The low bits of `shifted` hold k: adding them to p's exponent multiplies by 2^k.
    Vec<T> value = bit_cast<T>(bit_cast<Bits>(p) + (bit_cast<Bits>(shifted) << C::mantissa_bits));
    const auto extreme = outside(x, C::largest_exponent);
    if (any(extreme)) [[unlikely]] {
        for (int i = 0; i < lanes<T>; ++i) {
            if (!extreme[i]) continue;
            value.set(i, static_cast<T>(std::exp(static_cast<double>(x[i]))));
            if (!std::isfinite(value[i])) overflow = true;
        }
    }
    return value;
}

}  // namespace kitchenette::KITCHENETTE_VARIANT
