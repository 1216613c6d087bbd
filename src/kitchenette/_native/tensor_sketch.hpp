// Tensor Sketch (Pham and Pagh 2013, algorithm 1): count sketches of a row, convolved by
// multiplying their spectra, for as many rows at a time as a vector has lanes.
//
// Everything from the count sketch to the last store happens in one thread's cache. A row's
// columns are added in their order whether it is dense or sparse; a column that is
// zero adds a zero to a sum that is not a negative zero, so leaving it out changes no bit.
#pragma once

#include "fourier.hpp"
#include "structured.hpp"

namespace kitchenette::KITCHENETTE_VARIANT {

// ---------------------------------------------------------------- count sketches

// Sketch number `factor` of up to N rows; x holds them transposed if they are dense.
template <class T> void count_sketch(const TensorSketch<T>& map, const Rows<T>& rows, Size row,
                                     Size count, const T* x, Size factor, T* sketch) {
    constexpr Size N = lanes<T>;
    const std::int32_t* buckets = map.buckets + factor * map.n_inputs;
    const T* weights = map.weights + factor * map.n_inputs;
    std::memset(sketch, 0, sizeof(T) * N * map.n_buckets);
    if (map.n_inputs > rows.n_columns)  // one more input, which is always 1
        store(sketch + buckets[rows.n_columns] * N, broadcast(weights[rows.n_columns]));
    if (rows.sparse()) {
        for (Size r = 0; r < count; ++r)
            for (Size k = rows.starts[row + r]; k < rows.starts[row + r + 1]; ++k) {
                const Size column = rows.indices[k];
                sketch[buckets[column] * N + r] += weights[column] * rows.values[k];
            }
        return;
    }
    for (Size j = 0; j < rows.n_columns; ++j) {
        T* bucket = sketch + buckets[j] * N;
        store(bucket, load(bucket) + broadcast(weights[j]) * load(x + j * N));
    }
}

// ---------------------------------------------------------------- power of two

// The product of the sketches' spectra, in the order of evaluate_real.
template <class T, class Sketch>
void multiply_spectra(const TensorSketch<T>& map, const Sketch& sketch, T* product, T* work) {
    constexpr Size N = lanes<T>;
    const Size D = map.n_buckets;
    sketch(Size{0}, product);
    evaluate_real(product, D, map.roots, Store<T>());
    for (Size factor = 1; factor < map.degree; ++factor) {
        sketch(factor, work);
        evaluate_real(work, D, map.roots, [&](T* re, T* im, Complex<T> value) {
            T *to_re = product + (re - work), *to_im = product + (im - work);
            store(to_re, to_im, load(to_re, to_im) * value);
        });
        for (Size k = 0; k < (D < 2 ? D : 2); ++k)
            store(product + k * N, load(product + k * N) * load(work + k * N));
    }
}

// ---------------------------------------------------------------- any other length

// The spectrum at 0 ... D - 1 of z_j chirp_j, j < D, which the caller has put in `re`
// and `im`, but for a factor chirp_k: Bluestein's convolution with a chirp, whose spectrum
// is in the table.
template <class T> void convolve_with_chirp(const TensorSketch<T>& map, T* re, T* im) {
    constexpr Size N = lanes<T>;
    const Size rest = sizeof(T) * N * (map.length - map.n_buckets);
    std::memset(re + map.n_buckets * N, 0, rest);
    std::memset(im + map.n_buckets * N, 0, rest);
    evaluate(re, im, map.length, Size{0}, map.roots, [&](T* to_re, T* to_im, Complex<T> value) {
        const T* filter = map.filter + 2 * (to_re - re) / N;
        store(to_re, to_im, broadcast(filter, filter + 1) * value);
    });
    interpolate(re, im, map.length, Size{0}, map.roots);
}

// The product of the sketches' spectra at the frequencies 0 ... D/2: real parts, then
// imaginary parts.
template <class T, class Sketch> void multiply_spectra_by_chirps(const TensorSketch<T>& map,
                                                                 const Sketch& sketch, T* product,
                                                                 T* work) {
    constexpr Size N = lanes<T>;
    const Size half = map.n_buckets / 2 + 1;
    T *re = work, *im = work + map.length * N;
    T *product_re = product, *product_im = product + half * N;
    for (Size factor = 0; factor < map.degree; ++factor) {
        sketch(factor, re);
        for (Size j = 0; j < map.n_buckets; ++j) {
            const Vec<T> value = load(re + j * N);
            store(im + j * N, value * broadcast(map.chirp[2 * j + 1]));
            store(re + j * N, value * broadcast(map.chirp[2 * j]));
        }
        convolve_with_chirp(map, re, im);
        for (Size k = 0; k < half; ++k) {
            const auto chirp = broadcast(map.chirp + 2 * k, map.chirp + 2 * k + 1);
            const auto value = chirp * load(re + k * N, im + k * N);
            T *to_re = product_re + k * N, *to_im = product_im + k * N;
            store(to_re, to_im, factor == 0 ? value : load(to_re, to_im) * value);
        }
    }
}

// D times the inverse transform of the product above, in its place. Its result is real, so it
// is the transform of the conjugate.
template <class T> void invert_by_chirps(const TensorSketch<T>& map, T* product, T* work) {
    constexpr Size N = lanes<T>;
    const Size D = map.n_buckets, half = D / 2 + 1;
    T *re = work, *im = work + map.length * N;
    for (Size k = 0; k < D; ++k) {
        const Size from = k < half ? k : D - k;
        auto value = load(product + from * N, product + (half + from) * N);
        if (k < half) value = conjugate(value);
        store(re + k * N, im + k * N, value * broadcast(map.chirp + 2 * k, map.chirp + 2 * k + 1));
    }
    convolve_with_chirp(map, re, im);
    for (Size k = 0; k < D; ++k) {
        const auto chirp = broadcast(map.chirp + 2 * k, map.chirp + 2 * k + 1);
        store(product + k * N, (chirp * load(re + k * N, im + k * N)).re);
    }
}

// ---------------------------------------------------------------- features

template <class T> Size tensor_sketch_scratch(const TensorSketch<T>& map, const Rows<T>& rows) {
    const Size input = rows.sparse() ? 0 : rows.n_columns;
    const Size product = map.n_buckets + 2;
    return (input + product + (map.chirp ? 2 : 1) * map.length) * lanes<T>;
}

template <class T> bool tensor_sketch_rows(const TensorSketch<T>& map, const Rows<T>& rows,
                                           Size row, Size count, const Output<T>& out, T* scratch) {
    constexpr Size N = lanes<T>;
    T* product = scratch;
    T* work = product + (map.n_buckets + 2) * N;
    T* x = work + (map.chirp ? 2 : 1) * map.length * N;
    if (!rows.sparse()) read_lanes(rows, row, count, rows.n_columns, static_cast<T*>(nullptr), x);
    const auto sketch = [&](Size factor, T* target) {
        count_sketch(map, rows, row, count, x, factor, target);
    };
    const bool in_time = map.order == nullptr;
    if (map.degree == 1 && in_time) {
        sketch(Size{0}, product);
    } else if (map.chirp) {
        multiply_spectra_by_chirps(map, sketch, product, work);
        if (in_time) invert_by_chirps(map, product, work);
    } else {
        multiply_spectra(map, sketch, product, work);
        if (in_time) interpolate_real(product, map.n_buckets, map.roots);
    }
    using Writer = LaneWriter<T, Identity<T>>;
    const TailParameters<T> tail;
    const Identity<T> identity(tail);
    Writer writer{identity, tail, out, row, count, zero<T>()};
    for (Size f = 0; f < map.n_buckets; f += Writer::chunk) {
        Vec<T> z[Writer::chunk];
        for (Size k = 0; k < Writer::chunk; ++k) {
            if (f + k >= map.n_buckets)
                z[k] = zero<T>();
            else if (in_time)
                z[k] = load(product + (f + k) * N);
            else
                z[k] = load(product + map.order[f + k] * N) * broadcast(map.factors[f + k]);
        }
        writer.write(f, z);
    }
    return !writer.overflow;
}

}  // namespace kitchenette::KITCHENETTE_VARIANT
