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
#define KITCHENETTE_DECLARE(instructions)                                                      \
    namespace instructions {                                                                   \
    extern const Kernels<float> kernels_float;                                                 \
    extern const Kernels<double> kernels_double;                                               \
    const Variant variant = {KITCHENETTE_TEXT(instructions), &kernels_float, &kernels_double}; \
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
bool has_avx2() {
    return saves_registers(0x6) && cpu_bit(1, 2, 12) && cpu_bit(7, 1, 5);
}
bool has_avx512() {
    return has_avx2() && saves_registers(0xe6) && cpu_bit(7, 1, 16) && cpu_bit(7, 1, 17) &&
           cpu_bit(7, 1, 30) && cpu_bit(7, 1, 31);
}
#elif defined(__x86_64__)
bool has_avx2() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
bool has_avx512() {
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

// ---------------------------------------------------------------- Walsh-Hadamard

namespace {

constexpr Size cache_numbers = 1 << 15;  // what a thread may keep in its second-level cache

// One long transform at a time: its first passes are shared by the threads.
template <class T> void fwht_long(const Kernels<T>& kernels, T* x, Size length) {
    const Size q = length / 8;
    const Size piece = Size{1} << 14;
    parallel<T>(q / piece, length, 0, [&](Size task, T*) {
        kernels.hadamard_pass(x, length, q, Size{1}, task * piece, (task + 1) * piece);
    });
    if (q >= (Size{1} << 20)) {
        for (int k = 0; k < 8; ++k) fwht_long(kernels, x + k * q, q);
    } else {
        parallel<T>(8, length, 0, [&](Size task, T*) { kernels.hadamard_row(x + task * q, q, q); });
    }
}

}  // namespace

template <class T> void fwht(T* x, Size outer, Size length, Size inner) {
    const Kernels<T>& kernels = kernels_of<T>(current_variant());
    const Size total = outer * length * inner;
    if (length < 2 || total == 0) return;
    if (inner == 1) {
        if (length >= (Size{1} << 18) && outer < max_threads()) {
            for (Size i = 0; i < outer; ++i) fwht_long(kernels, x + i * length, length);
            return;
        }
        // Several short rows make one task.
        const Size rows = length >= 1024 ? 1 : 1024 / length;
        parallel<T>((outer + rows - 1) / rows, total, 0, [&](Size task, T*) {
            const Size first = task * rows;
            const Size count = outer - first < rows ? outer - first : rows;
            kernels.hadamard_row(x + first * length, count * length, length);
        });
        return;
    }
    const Size width = 64 / static_cast<Size>(sizeof(T));  // a cache line
    if (inner > width && length * width <= cache_numbers) {
        const Size chunks = (inner + width - 1) / width;
        parallel<T>(outer * chunks, total, length * width, [&](Size task, T* scratch) {
            const Size begin = task % chunks * width;
            const Size end = inner - begin < width ? inner : begin + width;
            kernels.hadamard_columns(x + task / chunks * length * inner, length, inner, begin, end,
                                     scratch);
        });
        return;
    }
    parallel<T>(outer, total, 0, [&](Size task, T*) {
        kernels.hadamard_runs(x + task * length * inner, length, inner);
    });
}

// ---------------------------------------------------------------- feature maps

namespace {

Size ceil_divide(Size a, Size b) {
    return (a + b - 1) / b;
}

// How work on rows is cut into tasks: units of rows, whose parts are shares of all the parts
// (tiles, panels) that the features come in. With few rows the threads share a row's parts.
struct Shares {
    Shares(Size units, Size parts, Size parts_per_thread)
        : parts_(parts),
          count_(units >= 2 * max_threads()
                     ? 1
                     : std::min(parts, ceil_divide(parts_per_thread * max_threads(), units))),
          size_(ceil_divide(parts, count_)) {}
    Size count() const { return count_; }
    Size first(Size task) const { return std::min(parts_, task % count_ * size_); }
    Size last(Size task) const { return std::min(parts_, first(task) + size_); }

  private:
    Size parts_, count_, size_;
};

// Calls `lanes_body(row, count, first, last, scratch)` for rows that fill the lanes and
// `row_body(row, first, last, scratch)` for single ones; both say whether all went well.
template <class T, class LanesBody, class RowBody>
bool in_lanes_or_rows(Size n_rows, Size lanes, bool row_by_row, Size parts, Size work, Size scratch,
                      const LanesBody& lanes_body, const RowBody& row_body) {
    // A last group that fills less than half of the lanes is cheaper row by row.
    const Size rest = n_rows % lanes;
    const Size singles = row_by_row ? n_rows : 2 * rest <= lanes ? rest : 0;
    const Size groups = ceil_divide(n_rows - singles, lanes);
    const Shares shares(groups + singles, parts, 2);
    std::atomic<bool> fine{true};
    parallel<T>((groups + singles) * shares.count(), work, scratch, [&](Size task, T* memory) {
        const Size unit = task / shares.count();
        const Size first = shares.first(task), last = shares.last(task);
        const Size row = unit * lanes;
        const bool good =
            unit < groups
                ? lanes_body(row, std::min(lanes, n_rows - singles - row), first, last, memory)
                : row_body(groups * lanes + unit - groups, first, last, memory);
        if (!good) fine.store(false, std::memory_order_relaxed);
    });
    return fine;
}

constexpr Size dense_group = 192;  // rows that share one reading of the weights

// Calls `body(row, count, first, last, scratch)` for groups of rows and shares of panels.
template <class T, class Scratch, class Body>
bool in_panels(Size n_rows, Size panels, Size work, const Scratch& scratch, const Body& body) {
    const Size groups = ceil_divide(n_rows, dense_group);
    const Shares shares(groups, panels, 4);
    std::atomic<bool> fine{true};
    parallel<T>(groups * shares.count(), work, scratch(std::min(dense_group, n_rows)),
                [&](Size task, T* memory) {
                    const Size row = task / shares.count() * dense_group;
                    if (!body(row, std::min(dense_group, n_rows - row), shares.first(task),
                              shares.last(task), memory))
                        fine.store(false, std::memory_order_relaxed);
                });
    return fine;
}

}  // namespace

template <class T>
bool structured(const Structured<T>& map, const Rows<T>& rows, const Output<T>& out) {
    if (rows.n_rows == 0) return true;
    const Kernels<T>& kernels = kernels_of<T>(current_variant());
    return in_lanes_or_rows<T>(
        rows.n_rows, kernels.lanes, map.row_by_row(), ceil_divide(map.n_frequencies, map.tile()),
        rows.n_rows * map.n_frequencies, kernels.structured_scratch(map),
        [&](Size row, Size count, Size first, Size last, T* scratch) {
            return kernels.structured_lanes(map, rows, row, count, first, last, out, scratch);
        },
        [&](Size row, Size first, Size last, T* scratch) {
            return kernels.structured_row(map, rows, row, first, last, out, scratch);
        });
}

template <class T> bool dense(const Dense<T>& map, const Rows<T>& rows, const Output<T>& out) {
    if (rows.n_rows == 0) return true;
    const Kernels<T>& kernels = kernels_of<T>(current_variant());
    return in_panels<T>(
        rows.n_rows, ceil_divide(map.n_frequencies, panel),
        rows.n_rows * map.n_frequencies * (rows.n_columns / 8 + 1), kernels.dense_scratch,
        [&](Size row, Size count, Size first, Size last, T* scratch) {
            return kernels.dense_rows(map, rows, row, count, first, last, out, scratch);
        });
}

template <class T>
bool hadamard_products(const HadamardProducts<T>& map, const Rows<T>& rows, const Output<T>& out) {
    if (rows.n_rows == 0) return true;
    const Kernels<T>& kernels = kernels_of<T>(current_variant());
    return in_lanes_or_rows<T>(
        rows.n_rows, kernels.lanes, map.row_by_row(), ceil_divide(map.n_features, product_group),
        rows.n_rows * (map.n_features + map.n_factors * map.block),
        kernels.hadamard_products_scratch(map),
        [&](Size row, Size count, Size first, Size last, T* scratch) {
            return kernels.hadamard_products_lanes(map, rows, row, count, first, last, out,
                                                   scratch);
        },
        [&](Size row, Size first, Size last, T* scratch) {
            return kernels.hadamard_products_row(map, rows, row, first, last, out, scratch);
        });
}

template <class T>
bool sign_products(const SignProducts<T>& map, const Rows<T>& rows, const Output<T>& out) {
    if (rows.n_rows == 0) return true;
    const Kernels<T>& kernels = kernels_of<T>(current_variant());
    const Size panels = ceil_divide(map.n_features, panel);
    return in_panels<T>(
        rows.n_rows, panels, rows.n_rows * map.starts[panels] * panel * (rows.n_columns / 8 + 1),
        kernels.sign_products_scratch,
        [&](Size row, Size count, Size first, Size last, T* scratch) {
            return kernels.sign_products_rows(map, rows, row, count, first, last, out, scratch);
        });
}

template <class T>
bool tensor_sketch(const TensorSketch<T>& map, const Rows<T>& rows, const Output<T>& out) {
    if (rows.n_rows == 0) return true;
    const Kernels<T>& kernels = kernels_of<T>(current_variant());
    const Size lanes = kernels.lanes;
    std::atomic<bool> fine{true};
    parallel<T>(ceil_divide(rows.n_rows, lanes), rows.n_rows * map.length * map.degree,
                kernels.tensor_sketch_scratch(map, rows), [&](Size task, T* scratch) {
                    const Size row = task * lanes;
                    if (!kernels.tensor_sketch_rows(
                            map, rows, row, std::min(lanes, rows.n_rows - row), out, scratch))
                        fine.store(false, std::memory_order_relaxed);
                });
    return fine;
}

template <class T> bool finish(const TailParameters<T>& tail, const T* z, Size stride, Size n_rows,
                               Size n_frequencies, const Output<T>& out) {
    const Kernels<T>& kernels = kernels_of<T>(current_variant());
    std::atomic<bool> fine{true};
    parallel<T>(n_rows, n_rows * n_frequencies, 0, [&](Size row, T*) {
        if (!kernels.finish_row(tail, z + row * stride, Size{0}, n_frequencies,
                                out.data + row * out.stride, out.n_columns))
            fine.store(false, std::memory_order_relaxed);
    });
    return fine;
}

#define KITCHENETTE_INSTANTIATE(T)                                                            \
    template void fwht<T>(T*, Size, Size, Size);                                              \
    template bool structured<T>(const Structured<T>&, const Rows<T>&, const Output<T>&);      \
    template bool dense<T>(const Dense<T>&, const Rows<T>&, const Output<T>&);                \
    template bool hadamard_products<T>(const HadamardProducts<T>&, const Rows<T>&,            \
                                       const Output<T>&);                                     \
    template bool sign_products<T>(const SignProducts<T>&, const Rows<T>&, const Output<T>&); \
    template bool tensor_sketch<T>(const TensorSketch<T>&, const Rows<T>&, const Output<T>&); \
    template bool finish<T>(const TailParameters<T>&, const T*, Size, Size, Size, const Output<T>&);
KITCHENETTE_INSTANTIATE(float)
KITCHENETTE_INSTANTIATE(double)

}  // namespace kitchenette
