// The last step of a feature map: a projection z becomes one or two output columns.
#pragma once

#include <limits>

#include "elementary.hpp"
#include "hadamard.hpp"

namespace kitchenette::KITCHENETTE_VARIANT {

// The terms of a nonlinearity that depend on the row.
template <class T> struct RowTerms {
    Vec<T> first = zero<T>(), second = zero<T>();
};

// Each nonlinearity maps a vector of projections, the frequencies' terms and the rows' terms to
// `columns` output vectors. It is the same function whether lanes are rows or frequencies, unless
// it depends on the frequency; it then gets the number of the frequency, or of the first one.

template <class T> struct Identity {
    static constexpr int columns = 1;
    static constexpr bool has_terms = false, has_row_terms = false, by_frequency = false;
    explicit Identity(const NonlinearityParameters<T>&) {}
    KITCHENETTE_INLINE void operator()(Vec<T> z, Vec<T>, const RowTerms<T>&, Vec<T>* out,
                                       bool& overflow) const {
        if (any(outside(z, std::numeric_limits<T>::max()))) [[unlikely]]
            overflow = true;
        out[0] = z;
    }
};

template <class T> struct SineCosine {
    static constexpr int columns = 2;
    static constexpr bool has_terms = false, has_row_terms = false, by_frequency = false;
    Vec<T> amplitude;
    explicit SineCosine(const NonlinearityParameters<T>& p) : amplitude(broadcast(p.amplitude)) {}
    KITCHENETTE_INLINE void operator()(Vec<T> z, Vec<T>, const RowTerms<T>&, Vec<T>* out,
                                       bool& overflow) const {
        cosine_sine(z, amplitude, out[0], out[1], overflow);
    }
};

template <class T> struct OffsetCosine {
    static constexpr int columns = 1;
    static constexpr bool has_terms = true, has_row_terms = false, by_frequency = false;
    Vec<T> amplitude;
    explicit OffsetCosine(const NonlinearityParameters<T>& p) : amplitude(broadcast(p.amplitude)) {}
    KITCHENETTE_INLINE void operator()(Vec<T> z, Vec<T> term, const RowTerms<T>&, Vec<T>* out,
                                       bool& overflow) const {
        out[0] = cosine(z + term, amplitude, overflow);
    }
};

template <class T> struct LocalExponential {
    static constexpr int columns = 1;
    static constexpr bool has_terms = true, has_row_terms = true, by_frequency = false;
    T row_weight;
    explicit LocalExponential(const NonlinearityParameters<T>& p) : row_weight(p.row_weight) {}
    KITCHENETTE_INLINE RowTerms<T> row_terms(Vec<T> squared_norm) const {
        return {squared_norm * broadcast(row_weight), zero<T>()};
    }
    KITCHENETTE_INLINE void operator()(Vec<T> z, Vec<T> term, const RowTerms<T>& row, Vec<T>* out,
                                       bool& overflow) const {
        out[0] = exponential(z - term - row.first, overflow);
    }
};

// Orthogonal polynomials of the cosine between row and frequency, or powers.
template <class T> struct PolynomialOf {
    static constexpr int columns = 1;
    static constexpr bool has_terms = true, has_row_terms = true, by_frequency = true;
    const NonlinearityParameters<T>& p;
    explicit PolynomialOf(const NonlinearityParameters<T>& parameters) : p(parameters) {}

    // 1 / |x| and |x|^row_power. For a zero row only the power zero is not zero.
    KITCHENETTE_INLINE RowTerms<T> row_terms(Vec<T> squared_norm) const {
        if (p.row_power < 0) return {broadcast(T{1}), broadcast(T{1})};
        Vec<T> inverse = zero<T>(), norm = zero<T>();
        for (int k = 0; k < lanes<T>; ++k) {
            norm.set(k, std::sqrt(squared_norm[k]));
            inverse.set(k, norm[k] > 0 ? 1 / norm[k] : T{0});
        }
        Vec<T> power = broadcast(T{1});
        for (Size r = p.row_power; r > 0; r /= 2) {
            if (r % 2) power = power * norm;
            norm = norm * norm;
        }
        return {inverse, power};
    }

    KITCHENETTE_INLINE Vec<T> next(Size n, Vec<T> t, Vec<T> current, Vec<T> previous) const {
        return mul_add(t * broadcast(p.leading[n]), current, previous * broadcast(p.trailing[n]));
    }
    KITCHENETTE_INLINE Vec<T> finished(Vec<T> value, Vec<T> term, const RowTerms<T>& row,
                                       bool& overflow) const {
        const Vec<T> out = value * term * row.second;
        if (any(outside(out, std::numeric_limits<T>::max()))) [[unlikely]]
            overflow = true;
        return out;
    }

    // All lanes are of frequency f.
    KITCHENETTE_INLINE void operator()(Size f, Vec<T> z, Vec<T> term, const RowTerms<T>& row,
                                       Vec<T>* out, bool& overflow) const {
        const Vec<T> t = z * row.first;
        Vec<T> current = broadcast(T{1}), previous = zero<T>();
        const Size degree = p.degrees[f];
        for (Size n = 0; n < degree; ++n) {
            const Vec<T> value = next(n, t, current, previous);
            previous = current;
            current = value;
        }
        out[0] = finished(current, term, row, overflow);
    }

    // The lanes are the frequencies f, f + 1, ..., `count` of them.
    KITCHENETTE_INLINE void across(Size f, int count, Vec<T> z, Vec<T> term, const RowTerms<T>& row,
                                   Vec<T>* out, bool& overflow) const {
        const Vec<T> t = z * row.first;
        Vec<T> current = broadcast(T{1}), previous = zero<T>(), picked = zero<T>();
        for (Size n = 0, left = count; left > 0; ++n) {
            for (int k = 0; k < count; ++k)
                if (p.degrees[f + k] == n) {
                    picked.set(k, current[k]);
                    --left;
                }
            if (left == 0) break;
            const Vec<T> value = next(n, t, current, previous);
            previous = current;
            current = value;
        }
        out[0] = finished(picked, term, row, overflow);
    }
};

// Calls `body` with the nonlinearity that the parameters name.
template <class T, class Body>
bool with_nonlinearity(const NonlinearityParameters<T>& p, const Body& body) {
    switch (p.kind) {
        case Nonlinearity::sincos:
            return body(SineCosine<T>(p));
        case Nonlinearity::offset:
            return body(OffsetCosine<T>(p));
        case Nonlinearity::local:
            return body(LocalExponential<T>(p));
        case Nonlinearity::power:
            return body(PolynomialOf<T>(p));
        default:
            return body(Identity<T>(p));
    }
}

// A sincos map with an odd number of columns ends with sqrt(2) cos(z + b) instead of a
// pair, which is an unbiased estimate of the kernel in a single column.
template <class T, class Function>
KITCHENETTE_INLINE bool is_unpaired(Size frequency, Size n_columns) {
    return Function::columns == 2 && 2 * frequency + 1 == n_columns;
}

// ---------------------------------------------------------------- lanes are rows

template <class T, class Function> struct LaneWriter {
    static constexpr int N = lanes<T>;
    // Frequencies per call: enough to fill whole vectors of every row.
    static constexpr int chunk = N / Function::columns > 8 ? N / Function::columns : 8;

    const Function& function;
    const NonlinearityParameters<T>& parameters;
    const Output<T>& out;
    Size first_row;
    Size count;
    RowTerms<T> row_terms;
    bool overflow = false;

    // z holds `chunk` frequencies starting with f.
    KITCHENETTE_INLINE void write(Size f, const Vec<T>* z) {
        constexpr int per_square = N / Function::columns;
        for (int start = 0; start < chunk; start += per_square) {
            const Size column = (f + start) * Function::columns;
            if (column >= out.n_columns) return;
            Vec<T> square[N];
            KITCHENETTE_UNROLL
            for (int k = 0; k < per_square; ++k) {
                Vec<T> term = zero<T>();
                if constexpr (Function::has_terms)
                    term = broadcast(parameters.terms[f + start + k]);
                Vec<T>* place = square + k * Function::columns;
                if constexpr (Function::by_frequency)
                    function(f + start + k, z[start + k], term, row_terms, place, overflow);
                else
                    function(z[start + k], term, row_terms, place, overflow);
            }
            if (column + N > out.n_columns) [[unlikely]] {
                for (int k = 0; k < per_square; ++k)
                    if (is_unpaired<T, Function>(f + start + k, out.n_columns))
                        square[2 * k] = cosine(z[start + k] + broadcast(parameters.unpaired_offset),
                                               broadcast(parameters.amplitude), overflow);
                transpose(square);
                for (Size r = 0; r < count; ++r)
                    std::memcpy(out.at(first_row + r, column), &square[r],
                                sizeof(T) * (out.n_columns - column));
                return;
            }
            transpose(square);
            T* place = out.at(first_row, column);
            if (count == N) [[likely]] {
                KITCHENETTE_UNROLL
                for (int r = 0; r < N; ++r) store(place + r * out.stride, square[r]);
            } else {
                for (Size r = 0; r < count; ++r) store(place + r * out.stride, square[r]);
            }
        }
    }
};

// ---------------------------------------------------------------- lanes are frequencies

template <class T, class Function> struct RowWriter {
    static constexpr int N = lanes<T>;

    const Function& function;
    const NonlinearityParameters<T>& parameters;
    T* row;  // the address of first_column
    Size first_column;
    Size n_columns;
    RowTerms<T> row_terms = {};
    bool overflow = false;

    KITCHENETTE_INLINE RowWriter(const Function& its_function,
                                 const NonlinearityParameters<T>& its_parameters,
                                 const Output<T>& out, Size r)
        : function(its_function),
          parameters(its_parameters),
          row(out.at(r, out.first_column)),
          first_column(out.first_column),
          n_columns(out.n_columns) {}

    // z holds the N frequencies that start with f.
    KITCHENETTE_INLINE void write(Size f, Vec<T> z) {
        const Size column = f * Function::columns;
        constexpr int width = N * Function::columns;
        if (column >= n_columns) return;
        const bool whole = column + width <= n_columns;
        Vec<T> term = zero<T>();
        if constexpr (Function::has_terms) {
            if (whole)
                term = load(parameters.terms + f);
            else
                for (int k = 0; k < static_cast<int>(n_columns - column); ++k)
                    term.set(k, parameters.terms[f + k]);
        }
        Vec<T> values[2];
        if constexpr (Function::by_frequency)
            function.across(f, whole ? N : static_cast<int>(n_columns - column), z, term, row_terms,
                            values, overflow);
        else
            function(z, term, row_terms, values, overflow);
        if (!whole) [[unlikely]] {
            for (int k = 0; k < N; ++k)
                if (is_unpaired<T, Function>(f + k, n_columns))
                    values[0].set(k, cosine(z + broadcast(parameters.unpaired_offset),
                                            broadcast(parameters.amplitude), overflow)[k]);
        }
        if constexpr (Function::columns == 2) interleave(values[0], values[1]);
        T* place = row + (column - first_column);
        if (whole) [[likely]] {
            for (int k = 0; k < Function::columns; ++k) store(place + k * N, values[k]);
        } else {
            std::memcpy(place, values, sizeof(T) * (n_columns - column));
        }
    }
};

}  // namespace kitchenette::KITCHENETTE_VARIANT
