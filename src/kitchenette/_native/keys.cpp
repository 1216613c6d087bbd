// Keys of rows: hash values by which rows are sampled and equal rows recognized.
#include <bit>
#include <vector>

#include "drivers.hpp"
#include "threads.hpp"

namespace kitchenette {

namespace {

// The finalizer of the generator splitmix64, a bijection that mixes all bits.
std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

// An odd random number for every column.
std::uint64_t multiplier(Size column) {
    return mixed((static_cast<std::uint64_t>(column) + 1) * 0x9E3779B97F4A7C15u) | 1;
}

// The bits of a number in float64, so that both precisions agree, and zero for both zeros. Short
// numbers have only high bits, which are copied to the low ones; this is a bijection.
std::uint64_t bits(double number) {
    const std::uint64_t b = std::bit_cast<std::uint64_t>(number + 0.0);
    return b ^ (b >> 26) ^ (b >> 52);
}

}  // namespace

// Multilinear hashing: the sum of the bits times random numbers. Zeros add nothing, so dense and
// compressed rows agree.
template <class T> void row_keys(const Rows<T>& rows, std::uint64_t* keys) {
    std::vector<std::uint64_t> multipliers(rows.starts ? 0 : rows.n_columns);
    for (Size j = 0; j < static_cast<Size>(multipliers.size()); ++j) multipliers[j] = multiplier(j);
    const auto key = [&](Size r, char*) {
        std::uint64_t sum = 0;
        if (rows.starts) {
            for (Size k = rows.starts[r]; k < rows.starts[r + 1]; ++k)
                sum += bits(rows.values[k]) * multiplier(rows.indices[k]);
        } else {
            const T* row = rows.values + r * rows.stride;
            for (Size j = 0; j < rows.n_columns; ++j) sum += bits(row[j]) * multipliers[j];
        }
        keys[r] = mixed(sum + 0x9E3779B97F4A7C15u);  // so that the key of zeros is not zero
    };
    const Size numbers = rows.starts ? rows.starts[rows.n_rows] : rows.n_columns * rows.n_rows;
    parallel<char>(rows.n_rows, numbers, 0, key);
}

template void row_keys(const Rows<float>&, std::uint64_t*);
template void row_keys(const Rows<double>&, std::uint64_t*);

}  // namespace kitchenette
