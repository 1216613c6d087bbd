"""Features for dot-product kernels from directions on the sphere (Le et al. 2013, section 3.3).

With v uniform on the unit sphere of d dimensions and p_n the polynomials that are orthonormal for
the distribution of one coordinate of v (Gegenbauer polynomials),

    E p_n(<x, v>) p_n(<y, v>) = L_n(<x, y>),   L_n = p_n / p_n(1),

for unit vectors x and y. So a function with an expansion in the L_n, f = sum of lambda_n L_n, is
estimated by features sqrt(lambda_n / count_n) p_n(<x, v>). (The p_n(1)^2 are the numbers N(d, n)
of spherical harmonics.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.linalg import eigh_tridiagonal
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from kitchenette import _core
from kitchenette.kernels import DotProductKernel, Polynomial, SphericalPolynomial
from kitchenette.kernels.spherical import moment_weights
from kitchenette.maps.degrees import (
    MOST_TERMS,
    Moments,
    cut_series,
    moments_of,
    optimal_counts,
)
from kitchenette.sketching.structured import zero_padded

MOST_DEGREES = 1024  # up to this degree the cost of an expansion is negligible
UNIT_TOLERANCE = 1e-4  # accepted deviation of a squared norm from one

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PolynomialFeatures:
    """Features weight |x|^row_power p(z / |x|) of projections z on unit directions."""

    degrees: NDArray[np.int32]  # (n_features,): the degree of each feature, descending
    weights: Array  # ndarray of shape (n_features,)
    # (largest degree,): p_{n+1}(t) = leading[n] t p_n(t) + trailing[n] p_{n-1}(t), p_0 = 1
    leading: Array
    trailing: Array
    # The power of |x|, or -1 for features weight p(z) without normalization of rows
    row_power: int = -1
    constant: float = 0.0  # the value of a column that is appended to the data

    def nonlinearity(self, padded: int, dtype: DTypeLike) -> _core.Nonlinearity:
        """The native function that is applied to ``padded`` projections."""
        return _core.Nonlinearity(
            "power",
            terms=zero_padded(self.weights, padded, dtype),
            degrees=zero_padded(self.degrees, padded, np.int32),
            leading=self.leading.astype(dtype),
            trailing=self.trailing.astype(dtype),
            row_power=self.row_power,
        )


def needs_unit_rows(kernel: Any) -> bool:
    """Whether the features are valid for rows on the unit sphere only."""
    return isinstance(kernel, DotProductKernel) and not isinstance(kernel, Polynomial)


def check_unit_rows(kernel: Any, X: Any) -> None:
    """Refuse rows that are not unit vectors."""
    squares = row_norms(X, squared=True)
    if np.abs(squares - 1).max() > UNIT_TOLERANCE:
        low, high = np.sqrt([squares.min(), squares.max()])
        raise ValueError(
            f"Fastfood supports {kernel!r} for rows of norm 1 only; these have norms from {low:g} "
            f"to {high:g}. Normalize them, as sklearn.preprocessing.normalize does, or use "
            "RandomMaclaurin."
        )


def data_constant(kernel: Any) -> float:
    """sqrt(coef0 / gamma) for Polynomial, zero for others.

    With this constant appended to rows, a Polynomial is a power of their inner product.
    """
    return float(np.sqrt(kernel.coef0 / kernel.gamma)) if isinstance(kernel, Polynomial) else 0.0


def choose_counts(
    kernel: Any, n_features: int, dimension: int, sample: Any, seed: int
) -> tuple[NDArray[np.int64], Array]:
    """The numbers of features per degree that minimize the variance on pairs of a sample.

    Their expectations are returned as well. Directions are uniform on the sphere in ``dimension``
    coordinates; rows are padded with zeros.
    """
    if isinstance(kernel, SphericalPolynomial):
        terms, moments = _power_moments(kernel, dimension, sample)
        return optimal_counts(terms, moments, n_features, seed)
    cosines, sizes = _cosines(sample, data_constant(kernel))
    pair_sizes = np.ones_like(cosines)
    if isinstance(kernel, Polynomial):
        # Products of features scale with |x|^r |y|^r, here relative to the largest norm.
        pair_sizes = np.outer(sizes, sizes) / sizes.max() ** 2 if sizes.max() > 0 else 0 * cosines
        pair_sizes = pair_sizes ** int(kernel.degree)
    lambdas = _expansion(kernel, dimension)
    present = np.flatnonzero(lambdas > 0)
    moments = _moments(present, cosines, pair_sizes, dimension)
    return optimal_counts(lambdas[present], moments, n_features, seed)


def polynomial_features(
    kernel: Any, counts: NDArray[np.int64], expected: Array, dimension: int, n_columns: int
) -> PolynomialFeatures:
    """Features with ``counts`` of each degree and weights that follow from ``expected``.

    Directions have ``dimension`` coordinates; rows of ``n_columns`` are padded with zeros.
    """
    if isinstance(kernel, SphericalPolynomial):
        return _powers(kernel, counts, expected, dimension, n_columns)
    lambdas = _expansion(kernel, dimension)
    leading, trailing = recurrence(lambdas.size - 1, dimension)
    present = np.flatnonzero(lambdas > 0)
    picks = _descending(counts, present.size)
    homogeneous = isinstance(kernel, Polynomial)
    gain = float(kernel.gamma) ** (int(kernel.degree) / 2) if homogeneous else 1.0
    return PolynomialFeatures(
        degrees=present[picks].astype(np.int32),
        weights=gain * np.sqrt(lambdas[present] / expected)[picks],
        leading=leading,
        trailing=trailing,
        row_power=int(kernel.degree) if homogeneous else -1,
        constant=data_constant(kernel),
    )


def polynomial_cost(kernel: Any, n_features: int, n_rows: int) -> float:
    """An upper bound of the operations for `polynomial_features` and features of n_rows rows."""
    if isinstance(kernel, SphericalPolynomial):
        last = np.size(kernel.coefficients)
    else:
        last = MOST_TERMS if kernel.last_degree is None else kernel.last_degree + 1
    return 1e5 + 1e4 * last + 20.0 * last * last + 3.0 * n_rows * n_features * last


def check_terms(kernel: Any, n_terms: int) -> None:
    """Refuse a kernel whose degree is too high for the number of counts, before expanding it."""
    last = None if isinstance(kernel, SphericalPolynomial) else kernel.last_degree
    if last is not None and last > max(2 * n_terms, MOST_DEGREES):
        raise ValueError(f"{n_terms} terms are too few for the degree of {kernel!r}.")


def _expansion(kernel: DotProductKernel, dimension: int) -> Array:
    """The lambda_n of a kernel; a Polynomial is a pure power once the constant is appended."""
    if isinstance(kernel, Polynomial):
        monomials = np.zeros(int(kernel.degree) + 1)
        monomials[-1] = 1.0
    else:
        series = cut_series(kernel, 1.0)
        monomials = np.zeros(int(series.degrees[-1]) + 1)
        monomials[series.degrees] = series.terms
    return legendre_coefficients(monomials, dimension)


def _descending(counts: NDArray[np.int64], n_terms: int) -> NDArray[np.intp]:
    """The index of the term of each feature, in descending order."""
    if counts.size != n_terms:
        raise ValueError(f"There are {n_terms} terms, but counts for {counts.size}.")
    return np.repeat(np.arange(n_terms), counts)[::-1]


def _power_moments(
    kernel: SphericalPolynomial, dimension: int, sample: Any
) -> tuple[Array, Moments]:
    """Moments of powers <x, v>^p at pairs of rows scaled to norms of at most one."""
    coefficients = np.asarray(kernel.coefficients, dtype=np.float64)
    present = np.flatnonzero(coefficients > 0)
    degrees: list[int] = present.tolist()
    correction = _length_corrections(present, dimension, sample.shape[1])
    rows = sample.astype(np.float64)
    dots = safe_sparse_dot(rows, rows.T, dense_output=True)
    norms = np.sqrt(np.outer(np.diag(dots), np.diag(dots)))
    largest = max(norms.max(), np.finfo(float).tiny)
    dots, norms = dots / largest, norms / largest

    def mean_power(p: int) -> Array:
        """The mean of (<x, v> <y, v>)^p over the directions v."""
        weights = moment_weights(p, dimension)
        powers = zip(range(p, -1, -2), weights, strict=True)
        return np.asarray(sum(w * dots**j * norms ** (p - j) for j, w in powers))

    means = np.stack([c * mean_power(p).ravel() for c, p in zip(correction, degrees, strict=True)])
    seconds = [np.mean(c**2 * mean_power(2 * p)) for c, p in zip(correction, degrees, strict=True)]
    terms = coefficients[present] * largest**present
    return terms, moments_of(means, np.array(seconds))


def _powers(
    kernel: SphericalPolynomial,
    counts: NDArray[np.int64],
    expected: Array,
    dimension: int,
    n_columns: int,
) -> PolynomialFeatures:
    """Features that are powers <x, v>^p, for SphericalPolynomial."""
    coefficients = np.asarray(kernel.coefficients, dtype=np.float64)
    present = np.flatnonzero(coefficients > 0)
    picks = _descending(counts, present.size)
    correction = _length_corrections(present, dimension, n_columns)
    # Projections are of order 1 / sqrt(dimension); the scaling keeps their powers near one.
    size = np.sqrt(dimension)
    weights = np.sqrt(coefficients[present] * correction / expected) / size**present
    n_steps = int(present[-1])
    return PolynomialFeatures(
        degrees=present[picks].astype(np.int32),
        weights=weights[picks],
        leading=np.full(n_steps, size),
        trailing=np.zeros(n_steps),
    )


def _length_corrections(degrees: NDArray[np.intp], dimension: int, n_columns: int) -> Array:
    """1 / E |u|^(2p), where u is a uniform unit vector restricted to n_columns coordinates."""
    steps = [2.0 * np.arange(p) for p in degrees]
    return np.array([np.prod((dimension + s) / (n_columns + s)) for s in steps])


# ---------------------------------------------------------------- polynomials


def recurrence(largest_degree: int, dimension: int) -> tuple[Array, Array]:
    """The coefficients leading and trailing of `PolynomialFeatures` for the p_n.

    They follow from t p_n = b_{n+1} p_{n+1} + b_n p_{n-1}.
    """
    b = _jacobi(largest_degree + 1, dimension)
    return 1 / b[:largest_degree], -np.concatenate([[0.0], b])[:largest_degree] / b[:largest_degree]


def _jacobi(count: int, dimension: int) -> Array:
    """The off-diagonal b_1, b_2, ... of the Jacobi matrix of the p_n."""
    n = np.arange(2, count + 1)
    d = dimension
    rest = np.sqrt(n * (n + d - 3) / ((2 * n + d - 2.0) * (2 * n + d - 4.0)))
    return np.concatenate([[1 / np.sqrt(d)], rest])[:count]


def evaluate(t: Array, largest_degree: int, dimension: int) -> Array:
    """p_0(t), ..., p_n(t), stacked."""
    leading, trailing = recurrence(largest_degree, dimension)
    values = [np.ones_like(t), np.zeros_like(t)]
    out = [values[0]]
    for first, second in zip(leading, trailing, strict=True):
        values = [first * t * values[0] + second * values[1], values[0]]
        out.append(values[0])
    return np.stack(out)


def legendre_coefficients(monomials: Array, dimension: int) -> Array:
    """The expansion of sum of monomials[r] t^r in the L_n.

    It uses t L_n = ((n + d - 2) L_{n+1} + n L_{n-1}) / (2n + d - 2), whose coefficients are
    nonnegative, so there is no cancellation.
    """
    d = dimension
    n = np.arange(monomials.size)
    denominator = np.maximum(2 * n + d - 2.0, 1.0)
    up = np.where(n == 0, 1.0, (n + d - 2) / denominator)
    down = n / denominator
    power = np.zeros(monomials.size)
    power[0] = 1.0
    total = monomials[0] * power
    for a in monomials[1:]:
        shifted = np.zeros_like(power)
        shifted[1:] += up[:-1] * power[:-1]
        shifted[:-1] += down[1:] * power[1:]
        power = shifted
        total = total + a * power
    return total


# ---------------------------------------------------------------- moments


def _cosines(sample: Any, constant: float) -> tuple[Array, Array]:
    """Cosines between rows with a constant appended, and the norms of these rows."""
    rows = sample.astype(np.float64)
    dots = safe_sparse_dot(rows, rows.T, dense_output=True) + constant**2
    sizes = np.sqrt(np.diag(dots))
    safe = np.where(sizes > 0, sizes, 1.0)
    return np.clip(dots / np.outer(safe, safe), -1, 1), sizes


def _moments(degrees: NDArray[np.intp], cosines: Array, pair_sizes: Array, d: int) -> Moments:
    """Moments of p_n(<x, v>) p_n(<y, v>) times ``pair_sizes``, at pairs with these cosines.

    The second moment is exact: p_n^2 is expanded in the p_k, and the expectations of products
    are E p_j(<x, v>) p_k(<y, v>) = L_k if j = k, else zero.
    """
    top = int(degrees[-1])
    # Gauss quadrature with 2n + 1 nodes is exact for p_n^2 p_{2n}.
    b = _jacobi(2 * top + 1, d)
    nodes, vectors = eigh_tridiagonal(np.zeros(2 * top + 1), b[: 2 * top])
    node_weights = vectors[0] ** 2
    at_nodes = evaluate(nodes, 2 * top, d)
    t, sizes = cosines.ravel(), pair_sizes.ravel()
    # L_k at all pairs, for k = 0 ... 2n.
    at_one = evaluate(np.ones(1), 2 * top, d)
    ratios = evaluate(t, 2 * top, d) / at_one
    means = ratios[degrees] * sizes
    weights = np.mean(ratios * sizes**2, axis=1)
    seconds = []
    for n in degrees:
        squares = at_nodes @ (node_weights * at_nodes[n] ** 2)  # <p_n^2, p_k>
        seconds.append(float(squares**2 @ weights))
    return moments_of(means, np.array(seconds))
