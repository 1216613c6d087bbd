#include "random.hpp"

#include <cmath>
#include <utility>

#include "threads.hpp"

#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#endif

namespace kitchenette {
namespace {

struct Words {
    std::uint64_t word[4];
};

void multiply(std::uint64_t a, std::uint64_t b, std::uint64_t& high, std::uint64_t& low) {
#if defined(_MSC_VER) && !defined(__clang__)
    low = _umul128(a, b, &high);
#else
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    high = static_cast<std::uint64_t>(product >> 64);
    low = static_cast<std::uint64_t>(product);
#endif
}

Words philox(PhiloxKey key, std::uint64_t index, std::uint64_t block) {
    std::uint64_t c0 = index, c1 = block, c2 = 0, c3 = 0;
    std::uint64_t k0 = key.seed, k1 = key.stream;
    for (int round = 0; round < 10; ++round) {
        std::uint64_t high0, low0, high1, low1;
        multiply(0xD2E7470EE14C6C93u, c0, high0, low0);
        multiply(0xCA5A826395121157u, c2, high1, low1);
        c0 = high1 ^ c1 ^ k0;
        c2 = high0 ^ c3 ^ k1;
        c1 = low1;
        c3 = low0;
        k0 += 0x9E3779B97F4A7C15u;
        k1 += 0xBB67AE8584CAA73Bu;
    }
    return {{c0, c1, c2, c3}};
}

double uniform(std::uint64_t word) {
    return (static_cast<double>(word >> 11) + 0.5) * 0x1p-53;
}

template <int Terms> double ratio(const double (&p)[Terms], const double (&q)[Terms], double x) {
    double numerator = p[Terms - 1], denominator = q[Terms - 1];
    for (int i = Terms - 2; i >= 0; --i) {
        numerator = numerator * x + p[i];
        denominator = denominator * x + q[i];
    }
    return numerator / denominator;
}

}  // namespace

// Wichura (1988), algorithm AS 241, PPND16, relative accuracy about 1e-16.
double normal_quantile(double u) {
    static constexpr double a[8] = {3.3871328727963666080e0,  1.3314166789178437745e+2,
                                    1.9715909503065514427e+3, 1.3731693765509461125e+4,
                                    4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                    3.3430575583588128105e+4, 2.5090809287301226727e+3};
    static constexpr double b[8] = {1.0,
                                    4.2313330701600911252e+1,
                                    6.8718700749205790830e+2,
                                    5.3941960214247511077e+3,
                                    2.1213794301586595867e+4,
                                    3.9307895800092710610e+4,
                                    2.8729085735721942674e+4,
                                    5.2264952788528545610e+3};
    static constexpr double c[8] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                    5.76949722146069140550e0,  3.64784832476320460504e0,
                                    1.27045825245236838258e0,  2.41780725177450611770e-1,
                                    2.27238449892691845833e-2, 7.74545014278341407640e-4};
    static constexpr double d[8] = {1.0,
                                    2.05319162663775882187e0,
                                    1.67638483018380384940e0,
                                    6.89767334985100004550e-1,
                                    1.48103976427480074590e-1,
                                    1.51986665636164571966e-2,
                                    5.47593808499534494600e-4,
                                    1.05075007164441684324e-9};
    static constexpr double e[8] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                                    1.78482653991729133580e0,  2.96560571828504891230e-1,
                                    2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                    2.71155556874348757815e-5, 2.01033439929228813265e-7};
    static constexpr double f[8] = {1.0,
                                    5.99832206555887937690e-1,
                                    1.36929880922735805310e-1,
                                    1.48753612908506148525e-2,
                                    7.86869131145613259100e-4,
                                    1.84631831751005468180e-5,
                                    1.42151175831644588870e-7,
                                    2.04426310338993978564e-15};
    const double q = u - 0.5;
    if (std::fabs(q) <= 0.425) return q * ratio(a, b, 0.180625 - q * q);
    const double tail = std::sqrt(-std::log(q < 0 ? u : 1 - u));
    const double value = tail <= 5 ? ratio(c, d, tail - 1.6) : ratio(e, f, tail - 5);
    return q < 0 ? -value : value;
}

namespace {

// fill(out, words) for every number of every block, four numbers to a call of Philox.
template <class T, class Convert> void fill(PhiloxKey key, std::uint64_t first_block, Size blocks,
                                            Size count, T* out, const Convert& convert) {
    constexpr Size piece = 4096;
    const Size pieces = (count + piece - 1) / piece;
    parallel<T>(blocks * pieces, blocks * count, 0, [&](Size task, T*) {
        const Size block = task / pieces, begin = task % pieces * piece;
        const Size end = count - begin < piece ? count : begin + piece;
        T* target = out + block * count;
        for (Size i = begin; i < end; i += 4) {
            const Words words = philox(key, static_cast<std::uint64_t>(i / 4),
                                       first_block + static_cast<std::uint64_t>(block));
            for (Size k = 0; k < 4 && i + k < end; ++k) target[i + k] = convert(words.word[k]);
        }
    });
}

}  // namespace

void philox_words(PhiloxKey key, std::uint64_t first_block, Size blocks, Size count,
                  std::uint64_t* out) {
    fill(key, first_block, blocks, count, out, [](std::uint64_t word) { return word; });
}

void philox_uniforms(PhiloxKey key, std::uint64_t first_block, Size blocks, Size count,
                     double* out) {
    fill(key, first_block, blocks, count, out, uniform);
}

template <class T>
void philox_normals(PhiloxKey key, std::uint64_t first_block, Size blocks, Size count, T* out) {
    fill(key, first_block, blocks, count, out,
         [](std::uint64_t word) { return static_cast<T>(normal_quantile(uniform(word))); });
}
template void philox_normals<float>(PhiloxKey, std::uint64_t, Size, Size, float*);
template void philox_normals<double>(PhiloxKey, std::uint64_t, Size, Size, double*);

void philox_signs(PhiloxKey key, std::uint64_t first_block, Size blocks, Size count,
                  std::int8_t* out) {
    parallel<std::int8_t>(blocks, blocks * count / 8, 0, [&](Size block, std::int8_t*) {
        std::int8_t* target = out + block * count;
        Words words{};
        for (Size i = 0; i < count; ++i) {
            if (i % 256 == 0)
                words = philox(key, static_cast<std::uint64_t>(i / 256),
                               first_block + static_cast<std::uint64_t>(block));
            target[i] = (words.word[i / 64 % 4] >> (i % 64)) & 1 ? -1 : 1;
        }
    });
}

void philox_permutations(PhiloxKey key, std::uint64_t first_block, Size blocks, Size count,
                         std::int32_t* out) {
    parallel<std::int32_t>(blocks, blocks * count, 0, [&](Size block, std::int32_t*) {
        std::int32_t* target = out + block * count;
        for (Size i = 0; i < count; ++i) target[i] = static_cast<std::int32_t>(i);
        Words words{};
        for (Size i = count - 1, drawn = 0; i > 0; --i, ++drawn) {
            if (drawn % 4 == 0)
                words = philox(key, static_cast<std::uint64_t>(drawn / 4),
                               first_block + static_cast<std::uint64_t>(block));
            // A word times (i + 1), divided by 2^64: uniform on 0 ... i up to 2^-38.
            std::uint64_t pick, rest;
            multiply(words.word[drawn % 4], static_cast<std::uint64_t>(i) + 1, pick, rest);
            std::swap(target[i], target[pick]);
        }
    });
}

}  // namespace kitchenette
