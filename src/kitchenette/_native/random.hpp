// Random numbers as a pure function of (key, stream, block, index).
//
// Philox4x64-10 (Salmon et al. 2011), the generator of numpy.random.Philox, with the
// counter (index / 4, block, 0, 0) and the key (seed, stream). Number `index` of a block
// is made from word index % 4 alone, so any part of any stream can be made by itself.
#pragma once

#include "variants.hpp"

namespace kitchenette {

struct PhiloxKey {
    std::uint64_t seed;
    std::uint64_t stream;
};

// `count` numbers of each of the blocks first_block ..., block after block.
void philox_words(PhiloxKey key, std::uint64_t first_block, Size blocks, Size count,
                  std::uint64_t* out);
// Uniform numbers in the open interval (0, 1).
void philox_uniforms(PhiloxKey key, std::uint64_t first_block, Size blocks, Size count,
                     double* out);
// The inverse of the normal distribution function, for numbers in the open interval (0, 1).
double normal_quantile(double u);
// Standard normal numbers, by the inverse distribution function of the uniforms above.
template <class T>
void philox_normals(PhiloxKey key, std::uint64_t first_block, Size blocks, Size count, T* out);
// Signs +1 or -1, each from one bit of a word.
void philox_signs(PhiloxKey key, std::uint64_t first_block, Size blocks, Size count,
                  std::int8_t* out);
// Permutations of 0 ... count - 1 (Fisher-Yates).
void philox_permutations(PhiloxKey key, std::uint64_t first_block, Size blocks, Size count,
                         std::int32_t* out);

}  // namespace kitchenette
