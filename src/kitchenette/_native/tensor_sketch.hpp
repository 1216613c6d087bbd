// Tensor Sketch (Pham and Pagh 2013, algorithm 1): count sketches of a row, convolved by
// multiplying their spectra, for as many rows at a time as a vector has lanes.
//
// All steps are done in one thread's cache. Columns are added in the same order for dense and
// sparse rows, and adding a zero does not change a sum, so both give bitwise equal results.
//
// The spectra are multiplied part by part (see fft.hpp): a polynomial modulo z^n - r is made
// from the columns of a row themselves, which are few beside the buckets of a wide sketch. So the
// transforms begin with parts that are not longer than needed to hold the columns, and only the
// inverse of the product goes through a wide sketch.
//
// Transforms have a power of two as their length. For any other number D of buckets there are two
// ways: padded transforms, which give a linear convolution that is then folded to length D; or
// transforms of length D by convolution with a chirp (Bluestein).
//
// A tree of sketches (Ahle et al. 2020) sketches tensor products of two vectors, each of which is
// the row or the sketch of a node below. Such a sketch stays a spectrum: up to the scales of its
// coordinates, which the weights of the node above contain, that is an orthogonal transform.
#pragma once

#include <algorithm>
#include <array>
#include <bit>

#include "structured.hpp"
#include "variants.hpp"

namespace kitchenette {

template <class T> struct TensorSketch {
    Size n_columns = 0;
    Size n_features = 1;  // the number of buckets, D
    Size degree = 1;
    Size n_inputs = 0;  // the columns of a row, plus one for a constant 1 if any
    const std::int32_t* buckets = nullptr;  // one per factor and input
    const T* weights = nullptr;             // likewise: a sign and a scale
    Size length = 1;                        // of the transforms, a power of two
    Size part = 1;              // the length of the parts that are transformed, a power of four
    const T* circle = nullptr;  // the complex roots of unity of order length / part
    const T* roots = nullptr;   // six numbers for each fourth of the length, see fft.hpp
    const T* chirp = nullptr;   // D complex numbers, or none
    const T* filter = nullptr;  // the chirp's spectrum
    const std::int32_t* positions = nullptr;  // the position of each output column in the spectrum
    const T* output_scales = nullptr;         // the factor of each output column

    Size n_parts() const { return 1; }
    Size features_per_part() const { return n_features; }
    Size work() const { return length * degree; }
    Pace pace(Size lanes) const { return {lanes, 0, 1}; }
    bool checks_rows() const { return false; }
};

// One of the two count sketches of a node: of the row, or of the sketch of another node.
template <class T> struct NodeFactor {
    Size child = -1;  // the index of the other node; negative for the row
    Size n_inputs = 0;
    const std::int32_t* buckets = nullptr;
    const T* weights = nullptr;
};

// A node: a sketch of degree two, whose hash functions are those of its factors.
template <class T> struct SketchNode {
    TensorSketch<T> sketch;
    NodeFactor<T> factors[2];
    Size level = 0;  // the distance from the last node, which gives the features
};

template <class T> struct SketchTree {
    Size n_columns = 0;
    Size n_features = 1;
    Size width = 1;                        // of the sketches of all nodes but the last
    Size n_levels = 0;                     // of nodes that have nodes below
    const SketchNode<T>* nodes = nullptr;  // children before parents
    Size n_nodes = 0;

    const SketchNode<T>& last() const { return nodes[n_nodes - 1]; }
    Size n_parts() const { return 1; }
    Size features_per_part() const { return n_features; }
    Size work() const { return last().sketch.work() + (n_nodes - 1) * 2 * width; }
    Pace pace(Size lanes) const { return {lanes, 0, 1}; }
    bool checks_rows() const { return false; }
};

}  // namespace kitchenette

#if defined(KITCHENETTE_VARIANT)
#include "fft.hpp"

namespace kitchenette::KITCHENETTE_VARIANT {

// ---------------------------------------------------------------- count sketches

// Up to N rows; x holds them transposed if they are dense.
template <class T> struct Lanes {
    const Rows<T>& rows;
    Size row, count;
    const T* x;
};

// What a count sketch is of, and its hash functions.
template <class T> struct Hashed {
    const Lanes<T>& lane;
    Size n_inputs;
    const std::int32_t* buckets;
    const T* weights;
};

// All factors of a sketch are count sketches of the row.
template <class T> KITCHENETTE_INLINE Hashed<T> factor_of(const TensorSketch<T>& map,
                                                          const Lanes<T>& lane, Size factor) {
    const Size first = factor * map.n_inputs;
    return {lane, map.n_inputs, map.buckets + first, map.weights + first};
}

// The inputs of a node of a tree.
template <class T> struct NodeLanes {
    const NodeFactor<T>* factors;
    const Lanes<T>* lanes[2];
};

template <class T> KITCHENETTE_INLINE Hashed<T> factor_of(const TensorSketch<T>&,
                                                          const NodeLanes<T>& node, Size factor) {
    const NodeFactor<T>& its = node.factors[factor];
    return {*node.lanes[factor], its.n_inputs, its.buckets, its.weights};
}

// The digits of b < n in the opposite order, for n a power of two: n phi(b) in fft.hpp.
KITCHENETTE_INLINE Size reversed_digits(Size b, Size n) {
    Size reversed = 0;
    for (; n > 1; n /= 2, b /= 2) reversed = 2 * reversed + b % 2;
    return reversed;
}

// Sketch number `factor`, a polynomial, modulo z^n - r for part b of the transform: bucket h goes
// to h % n, times the power h / n of r, so that `im` is only needed if r is not 1.
template <bool complex, class T, class Source> void count_sketch(const TensorSketch<T>& map,
                                                                 const Source& source, Size factor,
                                                                 Size n, Size b, T* re, T* im) {
    constexpr Size N = lanes<T>;
    const Hashed<T> hashed = factor_of(map, source, factor);
    const Lanes<T>& lane = hashed.lane;
    const Rows<T>& rows = lane.rows;
    const std::int32_t* buckets = hashed.buckets;
    const T* weights = hashed.weights;
    const Size order = map.length / map.part, turn = complex ? reversed_digits(b, order) : 0;
    const int digits = std::countr_zero(static_cast<std::uint64_t>(n));
    const auto place = [&](Size input) { return (Size{buckets[input]} & (n - 1)) * N; };
    const auto weight = [&](Size input) {
        if constexpr (complex) {
            const Size power = (turn * (Size{buckets[input]} >> digits)) & (order - 1);
            const T* root = map.circle + 2 * power;
            return std::array<T, 2>{weights[input] * root[0], weights[input] * root[1]};
        } else {
            return std::array<T, 1>{weights[input]};
        }
    };
    std::memset(re, 0, sizeof(T) * N * n);
    if constexpr (complex) std::memset(im, 0, sizeof(T) * N * n);
    if (hashed.n_inputs > rows.n_columns) {  // the constant input 1
        const auto w = weight(rows.n_columns);
        store(re + place(rows.n_columns), broadcast(w[0]));
        if constexpr (complex) store(im + place(rows.n_columns), broadcast(w[1]));
    }
    if (rows.sparse()) {
        for (Size r = 0; r < lane.count; ++r)
            for (Size k = rows.starts[lane.row + r]; k < rows.starts[lane.row + r + 1]; ++k) {
                const Size column = rows.indices[k], at = place(column) + r;
                const auto w = weight(column);
                re[at] += w[0] * rows.values[k];
                if constexpr (complex) im[at] += w[1] * rows.values[k];
            }
        return;
    }
    for (Size j = 0; j < rows.n_columns; ++j) {
        const Size at = place(j);
        const auto w = weight(j);
        const Vec<T> value = load(lane.x + j * N);
        store(re + at, load(re + at) + broadcast(w[0]) * value);
        if constexpr (complex) store(im + at, load(im + at) + broadcast(w[1]) * value);
    }
}

// ---------------------------------------------------------------- products of spectra

// The product of the spectra of sketches modulo z^n - 1.
template <class T, class Source> void multiply_real_spectra(const TensorSketch<T>& map,
                                                            const Source& lane, T* product, Size n,
                                                            T* work) {
    constexpr Size N = lanes<T>;
    count_sketch<false, T>(map, lane, 0, n, 0, product, nullptr);
    evaluate_real(product, n, map.roots, Store<T>());
    for (Size factor = 1; factor < map.degree; ++factor) {
        count_sketch<false, T>(map, lane, factor, n, 0, work, nullptr);
        evaluate_real(work, n, map.roots, [&](T* re, T* im, Complex<T> value) {
            T *to_re = product + (re - work), *to_im = product + (im - work);
            store(to_re, to_im, load(to_re, to_im) * value);
        });
        for (Size k = 0; k < (n < 2 ? n : 2); ++k)
            store(product + k * N, load(product + k * N) * load(work + k * N));
    }
}

// The product of the spectra of sketches in part b of n numbers.
template <class T, class Source> void multiply_complex_spectra(const TensorSketch<T>& map,
                                                               const Source& lane, T* to_re,
                                                               T* to_im, Size n, Size b, T* work) {
    constexpr Size N = lanes<T>;
    T *re = work, *im = work + n * N;
    count_sketch<true, T>(map, lane, 0, n, b, to_re, to_im);
    evaluate(to_re, to_im, n, b, map.roots, Store<T>());
    for (Size factor = 1; factor < map.degree; ++factor) {
        count_sketch<true, T>(map, lane, factor, n, b, re, im);
        evaluate(re, im, n, b, map.roots, [&](T* from_re, T* from_im, Complex<T> value) {
            T *r = to_re + (from_re - re), *i = to_im + (from_im - im);
            store(r, i, load(r, i) * value);
        });
    }
}

// The product of the sketches' spectra, in the order of evaluate_real, or its inverse transform
// times its length.
template <class T, class Source> void multiply_spectra(const TensorSketch<T>& map,
                                                       const Source& lane, bool in_time, T* product,
                                                       T* work) {
    const auto real = [&](T* x, Size n) {
        multiply_real_spectra(map, lane, x, n, work);
        if (in_time) interpolate_real(x, n, map.roots);
    };
    const auto part = [&](T* re, T* im, Size n, Size b) {
        multiply_complex_spectra(map, lane, re, im, n, b, work);
        if (in_time) interpolate(re, im, n, b, map.roots);
    };
    if (in_time)
        interpolate_real(product, map.length, map.roots, map.part, real, part);
    else
        visit_parts(product, map.length, map.part, real, part);
}

// ---------------------------------------------------------------- chirps

// The spectrum of z_j chirp_j, j < D, at the frequencies 0 ... D - 1, without the factor chirp_k:
// Bluestein's convolution with a chirp, whose spectrum is in the table.
template <class T> void convolve_with_chirp(const TensorSketch<T>& map, T* re, T* im) {
    constexpr Size N = lanes<T>;
    evaluate(re, im, map.length, Size{0}, map.roots, [&](T* to_re, T* to_im, Complex<T> value) {
        const T* filter = map.filter + 2 * (to_re - re) / N;
        store(to_re, to_im, broadcast(filter, filter + 1) * value);
    });
    interpolate(re, im, map.length, Size{0}, map.roots);
}

template <class T> KITCHENETTE_INLINE Complex<T> chirp_at(const TensorSketch<T>& map, Size k) {
    return broadcast(map.chirp + 2 * k, map.chirp + 2 * k + 1);
}

// The product of the sketches' spectra at the frequencies 0 ... D/2: real parts, then
// imaginary parts. Two sketches A and B at a time are transformed as A + i B; with Z its
// spectrum and Y[k] the conjugate of Z[-k], A's is (Z + Y) / 2 and B's is (Z - Y) / 2i.
template <class T, class Source> void multiply_spectra_by_chirps(const TensorSketch<T>& map,
                                                                 const Source& lane, T* product,
                                                                 T* work) {
    constexpr Size N = lanes<T>;
    const Size D = map.n_features, half = D / 2 + 1;
    const Vec<T> one_half = broadcast(T{0.5});
    T *re = work, *im = work + map.length * N;
    for (Size factor = 0; factor < map.degree; factor += 2) {
        const bool paired = factor + 1 < map.degree;
        count_sketch<false, T>(map, lane, factor, map.length, 0, re, nullptr);
        if (paired)
            count_sketch<false, T>(map, lane, factor + 1, map.length, 0, im, nullptr);
        else
            std::memset(im, 0, sizeof(T) * N * map.length);
        for (Size j = 0; j < D; ++j) {
            T *r = re + j * N, *i = im + j * N;
            store(r, i, chirp_at(map, j) * load(r, i));
        }
        convolve_with_chirp(map, re, im);
        for (Size k = 0; k < half; ++k) {
            const Size mirror = k == 0 ? 0 : D - k;
            auto value = chirp_at(map, k) * load(re + k * N, im + k * N);
            if (paired) {
                const auto other =
                    conjugate(chirp_at(map, mirror) * load(re + mirror * N, im + mirror * N));
                const auto sum = value + other, difference = value - other;
                const Complex<T> a = {one_half * sum.re, one_half * sum.im};
                const Complex<T> b = {one_half * difference.im, -(one_half * difference.re)};
                value = a * b;
            }
            T *to_re = product + k * N, *to_im = product + (half + k) * N;
            store(to_re, to_im, factor == 0 ? value : load(to_re, to_im) * value);
        }
    }
}

// D times the inverse transform of the product above, in place. As its result is real, it is the
// transform of the conjugate.
template <class T> void invert_by_chirps(const TensorSketch<T>& map, T* product, T* work) {
    constexpr Size N = lanes<T>;
    const Size D = map.n_features, half = D / 2 + 1;
    T *re = work, *im = work + map.length * N;
    for (Size k = 0; k < D; ++k) {
        const Size from = k < half ? k : D - k;
        auto value = load(product + from * N, product + (half + from) * N);
        if (k < half) value = conjugate(value);
        store(re + k * N, im + k * N, chirp_at(map, k) * value);
    }
    const Size rest = sizeof(T) * N * (map.length - D);
    std::memset(re + D * N, 0, rest);
    std::memset(im + D * N, 0, rest);
    convolve_with_chirp(map, re, im);
    for (Size k = 0; k < D; ++k)
        store(product + k * N, (chirp_at(map, k) * load(re + k * N, im + k * N)).re);
}

// ---------------------------------------------------------------- features

template <class T> KITCHENETTE_INLINE Size product_size(const TensorSketch<T>& map) {
    return map.length > map.n_features + 2 ? map.length : map.n_features + 2;
}

template <class T> KITCHENETTE_INLINE Size work_size(const TensorSketch<T>& map) {
    return map.chirp ? 2 * map.length : std::min(map.length, 2 * map.part);
}

// The features of a sketch, from count sketches of `lane`.
template <class T, class Source> bool write_sketch(const TensorSketch<T>& map, const Source& lane,
                                                   const Piece& piece, const Output<T>& out,
                                                   T* product, T* work) {
    constexpr Size N = lanes<T>;
    const Size D = map.n_features;
    const bool in_time = map.positions == nullptr;
    if (map.degree == 1 && in_time) {
        count_sketch<false, T>(map, lane, 0, map.length, 0, product, nullptr);
    } else if (map.chirp) {
        multiply_spectra_by_chirps(map, lane, product, work);
        if (in_time) invert_by_chirps(map, product, work);
    } else {
        multiply_spectra(map, lane, in_time, product, work);
    }
    // A linear convolution is folded: entry D + i is added to entry i.
    const bool folded = in_time && !map.chirp && map.length > D;
    const Size end = folded ? map.degree * (D - 1) + 1 : D;
    using Writer = LaneWriter<T, Identity<T>>;
    const NonlinearityParameters<T> nonlinearity;
    const Identity<T> identity(nonlinearity);
    Writer writer{identity, nonlinearity, out, piece.row, piece.count, zero<T>()};
    for (Size f = 0; f < D; f += Writer::chunk) {
        Vec<T> z[Writer::chunk];
        for (Size k = 0; k < Writer::chunk; ++k) {
            if (f + k >= D) {
                z[k] = zero<T>();
            } else if (in_time) {
                z[k] = load(product + (f + k) * N);
                for (Size i = f + k + D; i < end; i += D) z[k] = z[k] + load(product + i * N);
            } else {
                z[k] =
                    load(product + map.positions[f + k] * N) * broadcast(map.output_scales[f + k]);
            }
        }
        writer.write(f, z);
    }
    return !writer.overflow;
}

template <class T> Size scratch_size(const TensorSketch<T>& map, Size, bool sparse) {
    const Size input = sparse ? 0 : map.n_columns;
    return (product_size(map) + work_size(map) + input) * lanes<T>;
}

template <class T> bool write_features(const TensorSketch<T>& map, const Rows<T>& rows,
                                       const Piece& piece, const Output<T>& out, T* scratch) {
    constexpr Size N = lanes<T>;
    T* product = scratch;
    T* work = product + product_size(map) * N;
    T* x = work + work_size(map) * N;
    if (!rows.sparse())
        read_lanes(rows, piece.row, piece.count, rows.n_columns, static_cast<T*>(nullptr), x);
    const Lanes<T> lane{rows, piece.row, piece.count, x};
    return write_sketch(map, lane, piece, out, product, work);
}

// ---------------------------------------------------------------- trees

// The largest size of the work space of any node.
template <class T> KITCHENETTE_INLINE Size work_size(const SketchTree<T>& map) {
    Size size = 0;
    for (Size k = 0; k < map.n_nodes; ++k) {
        const Size its = work_size(map.nodes[k].sketch);
        size = its > size ? its : size;
    }
    return size;
}

// The inputs of a node: the row, or vectors of `width` numbers.
template <class T> struct NodeInputs {
    Rows<T> all;
    Lanes<T> vectors[2];
    NodeLanes<T> of_node;

    NodeInputs(const SketchTree<T>& map, const SketchNode<T>& node, const Lanes<T>& row, T* first)
        : vectors{{all, 0, row.count, first}, {all, 0, row.count, first + map.width * lanes<T>}},
          of_node{node.factors,
                  {node.factors[0].child < 0 ? &row : &vectors[0],
                   node.factors[1].child < 0 ? &row : &vectors[1]}} {
        all.n_columns = map.width;
    }
    NodeInputs(const NodeInputs&) = delete;
    NodeInputs& operator=(const NodeInputs&) = delete;
};

// The spectra of the nodes below a node, two vectors for each level.
template <class T> void sketch_children(const SketchTree<T>& map, const SketchNode<T>& node,
                                        const Lanes<T>& row, T* sketches, T* work) {
    const Size size = map.width * lanes<T>;
    for (Size f = 0; f < 2; ++f) {
        if (node.factors[f].child < 0) continue;
        const SketchNode<T>& child = map.nodes[node.factors[f].child];
        sketch_children(map, child, row, sketches, work);
        const NodeInputs<T> inputs(map, child, row, sketches + 2 * child.level * size);
        T* product = sketches + (2 * node.level + f) * size;
        multiply_spectra(child.sketch, inputs.of_node, false, product, work);
    }
}

template <class T> Size scratch_size(const SketchTree<T>& map, Size, bool sparse) {
    const Size input = sparse ? 0 : map.n_columns;
    const Size vectors = product_size(map.last().sketch) + work_size(map) + input;
    return (vectors + 2 * map.n_levels * map.width) * lanes<T>;
}

template <class T> bool write_features(const SketchTree<T>& map, const Rows<T>& rows,
                                       const Piece& piece, const Output<T>& out, T* scratch) {
    constexpr Size N = lanes<T>;
    const TensorSketch<T>& last = map.last().sketch;
    T* product = scratch;
    T* work = product + product_size(last) * N;
    T* sketches = work + work_size(map) * N;
    T* x = sketches + 2 * map.n_levels * map.width * N;
    if (!rows.sparse())
        read_lanes(rows, piece.row, piece.count, rows.n_columns, static_cast<T*>(nullptr), x);
    const Lanes<T> row{rows, piece.row, piece.count, x};
    sketch_children(map, map.last(), row, sketches, work);
    const NodeInputs<T> inputs(map, map.last(), row, sketches);
    return write_sketch(last, inputs.of_node, piece, out, product, work);
}

}  // namespace kitchenette::KITCHENETTE_VARIANT
#endif
