#include "drivers.hpp"

#include <algorithm>
#include <cstring>

#include "threads.hpp"

#if defined(_MSC_VER)
#include <intrin.h>
#endif

namespace kitchenette {

// ---------------------------------------------------------------- instruction sets

#define KITCHENETTE_TEXT_(x) #x
#define KITCHENETTE_TEXT(x) KITCHENETTE_TEXT_(x)
#define KITCHENETTE_DECLARE(instructions)                                                \
    namespace instructions {                                                             \
    extern const VectorCode<float> code_float;                                           \
    extern const VectorCode<double> code_double;                                         \
    const Variant variant = {KITCHENETTE_TEXT(instructions), &code_float, &code_double}; \
    }
KITCHENETTE_DECLARE(KITCHENETTE_BASELINE)
#if defined(KITCHENETTE_WITH_AVX2)
KITCHENETTE_DECLARE(avx2)
#endif
#if defined(KITCHENETTE_WITH_AVX512)
KITCHENETTE_DECLARE(avx512)
#endif
#if defined(KITCHENETTE_WITH_WIDE)
KITCHENETTE_DECLARE(wide)
#endif

namespace {

#if defined(_MSC_VER) && !defined(__clang__)
// MSVC has no __builtin_cpu_supports: ask the processor, and whether the operating
// system saves the wide registers.
bool cpu_bit(int leaf, int reg, int bit) {
    int info[4];
    __cpuidex(info, leaf, 0);
    return (info[reg] >> bit) & 1;
}
bool saves_registers(unsigned long long mask) {
    return cpu_bit(1, 2, 27) && (_xgetbv(0) & mask) == mask;
}
[[maybe_unused]] bool has_avx2() {
    return saves_registers(0x6) && cpu_bit(1, 2, 12) && cpu_bit(7, 1, 5);
}
[[maybe_unused]] bool has_avx512() {
    return has_avx2() && saves_registers(0xe6) && cpu_bit(7, 1, 16) && cpu_bit(7, 1, 17) &&
           cpu_bit(7, 1, 30) && cpu_bit(7, 1, 31);
}
#elif defined(__x86_64__)
[[maybe_unused]] bool has_avx2() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
[[maybe_unused]] bool has_avx512() {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}
#endif

VariantList find_variants() {
    VariantList list{};
    list.items[list.count++] = &KITCHENETTE_BASELINE::variant;
#if defined(KITCHENETTE_WITH_AVX2)
    if (has_avx2()) list.items[list.count++] = &avx2::variant;
#endif
#if defined(KITCHENETTE_WITH_WIDE)
    if (has_avx2()) list.items[list.count++] = &wide::variant;
#endif
#if defined(KITCHENETTE_WITH_AVX512)
    if (has_avx512()) list.items[list.count++] = &avx512::variant;
#endif
    return list;
}

std::atomic<const Variant*> selected{nullptr};

}  // namespace

const VariantList& available_variants() {
    static const VariantList list = find_variants();
    return list;
}

const Variant& current_variant() {
    const Variant* variant = selected.load(std::memory_order_relaxed);
    const VariantList& list = available_variants();
    return variant ? *variant : *list.items[list.count - 1];
}

bool select_variant(const char* name) {
    const VariantList& list = available_variants();
    for (int i = 0; i < list.count; ++i)
        if (std::strcmp(list.items[i]->name, name) == 0) {
            selected = list.items[i];
            return true;
        }
    return false;
}

template <> const VectorCode<float>& vector_code<float>() {
    return *current_variant().code_float;
}
template <> const VectorCode<double>& vector_code<double>() {
    return *current_variant().code_double;
}

// ---------------------------------------------------------------- Walsh-Hadamard

namespace {

constexpr Size cache_numbers = 1 << 15;  // the numbers that fit a thread's second-level cache

// One long transform at a time: its first passes are shared by the threads.
template <class T> void fwht_long(const VectorCode<T>& code, T* x, Size length) {
    const Size q = length / 8;
    const Size piece = Size{1} << 14;
    parallel<T>(q / piece, length, 0, [&](Size task, T*) {
        code.hadamard_pass(x, length, q, Size{1}, task * piece, (task + 1) * piece);
    });
    if (q >= (Size{1} << 20)) {
        for (int k = 0; k < 8; ++k) fwht_long(code, x + k * q, q);
    } else {
        parallel<T>(8, length, 0, [&](Size task, T*) { code.hadamard_row(x + task * q, q, q); });
    }
}

}  // namespace

template <class T> void fwht(T* x, Size outer, Size length, Size inner) {
    const VectorCode<T>& code = vector_code<T>();
    const Size total = outer * length * inner;
    if (length < 2 || total == 0) return;
    if (inner == 1) {
        if (length >= (Size{1} << 18) && outer < max_threads()) {
            for (Size i = 0; i < outer; ++i) fwht_long(code, x + i * length, length);
            return;
        }
        // Several short rows make one task.
        const Size rows = length >= 1024 ? 1 : 1024 / length;
        parallel<T>((outer + rows - 1) / rows, total, 0, [&](Size task, T*) {
            const Size first = task * rows;
            const Size count = outer - first < rows ? outer - first : rows;
            code.hadamard_row(x + first * length, count * length, length);
        });
        return;
    }
    const Size width = 64 / static_cast<Size>(sizeof(T));  // a cache line
    if (inner > width && length * width <= cache_numbers) {
        const Size chunks = (inner + width - 1) / width;
        parallel<T>(outer * chunks, total, length * width, [&](Size task, T* scratch) {
            const Size begin = task % chunks * width;
            const Size end = inner - begin < width ? inner : begin + width;
            code.hadamard_columns(x + task / chunks * length * inner, length, inner, begin, end,
                                  scratch);
        });
        return;
    }
    parallel<T>(outer, total, 0, [&](Size task, T*) {
        code.hadamard_runs(x + task * length * inner, length, inner);
    });
}

// ---------------------------------------------------------------- nonlinearities

template <class T> bool finish(const NonlinearityParameters<T>& nonlinearity, const T* z,
                               Size stride, Size n_rows, Size n_frequencies, const Output<T>& out) {
    const VectorCode<T>& code = vector_code<T>();
    std::atomic<bool> fine{true};
    parallel<T>(n_rows, n_rows * n_frequencies, 0, [&](Size row, T*) {
        if (!code.finish_row(nonlinearity, z + row * stride, n_frequencies, row, out))
            fine.store(false, std::memory_order_relaxed);
    });
    return fine;
}

#define KITCHENETTE_INSTANTIATE(T)                                                        \
    template void fwht<T>(T*, Size, Size, Size);                                          \
    template bool finish<T>(const NonlinearityParameters<T>&, const T*, Size, Size, Size, \
                            const Output<T>&);
KITCHENETTE_INSTANTIATE(float)
KITCHENETTE_INSTANTIATE(double)

}  // namespace kitchenette
