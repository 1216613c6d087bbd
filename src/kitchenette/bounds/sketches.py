"""Tensor Sketch (Pham and Pagh 2013)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kitchenette.bounds.base import PairBound, bernstein, chebyshev, checked_number, hoeffding
from kitchenette.parameters import check_count
from kitchenette.sketching.sketch_tree import tree_moments


@dataclass(frozen=True)
class SketchRelativeError(PairBound):
    """The relative error of one `TensorSketch`, by its variance and Chebyshev's inequality.

    Parameters
    ----------
    degree : int
        The degree p of the kernel <x, y>^p. For coef0 > 0 the rows have a constant appended.
    cosine : float
        The cosine of the angle between the two rows, or the smallest one if there are many.

    Notes
    -----
    With c = cosine^2, D features, and q = 2 (q = 1 would do for odd D), the variance over the
    square of the kernel is at most

        [(1 + c)^p + (2c)^p - 2 c^p] / (D c^p)
        + q [(1 + 2c)^p - (1 + c)^p - (2c)^p + c^p] / (D^2 c^p),

    which is the formula in the Notes of `TensorSketch` in the limit of rows of many small entries,
    where it is largest. The relative error is the root of this over delta.

    Lemma 7 has 2 / (D c^p) instead. It rests on Lemma 6, which takes the hashes of all tuples of
    columns for independent, and holds for p = 1 only: for two equal rows the variance is
    (2^(p+1) - 2) / D and not 2 / D.

    References
    ----------
    Pham and Pagh, Fast and scalable polynomial kernels via explicit feature maps, KDD 2013,
    Lemma 7.

    Examples
    --------
    >>> from kitchenette.bounds import SketchRelativeError
    >>> bound = SketchRelativeError(degree=2, cosine=0.9)
    >>> bound.n_components(0.1, delta=0.05)
    13988
    >>> round(bound.error(13988, delta=0.05), 4)
    0.1
    """

    degree: int
    cosine: float

    def __post_init__(self) -> None:
        check_count("degree", self.degree)
        checked_number("cosine", abs(self.cosine), most=1)

    def _error(self, n_components: int, delta: float) -> float:
        c = self.cosine**2
        return chebyshev(sketch_variance(self.degree, c, n_components) / c**self.degree, delta)


@dataclass(frozen=True)
class SketchesMeanError(PairBound):
    """The absolute error of the mean of several sketches, ``TensorSketch(n_sketches=t)``.

    Parameters
    ----------
    degree : int
        The degree p of the kernel <x, y>^p. For coef0 > 0 the rows have a constant appended.
    absolute_sum : float
        R, the largest sum of the absolute entries of a row (its 1-norm).
    sketch_components : int
        The number of features of each sketch.
    norm : float, optional
        The largest Euclidean norm of a row; by default R, which it never exceeds.

    Notes
    -----
    The product of two sketches lies in [-R^2p, R^2p] (Lemma 8). For t sketches Hoeffding's
    inequality gives Lemma 9, an error of R^2p sqrt(2 log(2 / delta) / t), which does not depend on
    the size of a sketch. Bernstein's inequality with the corrected variance V of one sketch does:
    the error is at most b + sqrt(b^2 + 2 V log(2 / delta) / t) with
    b = (R^2p + norm^2p) log(2 / delta) / (3 t). The smaller of the two is returned. (The constant
    of Lemma 9 is correct.)

    For unit rows of d entries of equal size R is sqrt(d), and Lemma 9 needs
    2 d^(2p) log(2 / delta) / error^2 sketches. The lemma is of use for sparse rows.

    References
    ----------
    Pham and Pagh, Fast and scalable polynomial kernels via explicit feature maps, KDD 2013,
    Lemmas 8 and 9.

    Examples
    --------
    Unit rows with one or two nonzero entries:

    >>> from kitchenette.bounds import SketchesMeanError
    >>> bound = SketchesMeanError(degree=2, absolute_sum=2**0.5, sketch_components=64, norm=1.0)
    >>> bound.n_components(0.2, delta=0.05) // 64  # the number of sketches
    79
    """

    degree: int
    absolute_sum: float
    sketch_components: int
    norm: float | None = None

    def __post_init__(self) -> None:
        check_count("degree", self.degree)
        checked_number("absolute_sum", self.absolute_sum)
        check_count("sketch_components", self.sketch_components)
        if self.norm is not None:
            checked_number("norm", self.norm, most=self.absolute_sum)

    def _error(self, n_components: int, delta: float) -> float:
        n_sketches = n_components // self.sketch_components
        if n_sketches == 0:
            return np.inf
        most = self.absolute_sum ** (2 * self.degree)
        norm = self.absolute_sum if self.norm is None else self.norm
        kernel = norm ** (2 * self.degree)
        variance = kernel**2 * sketch_variance(self.degree, 1.0, self.sketch_components)
        return min(
            hoeffding(2 * most, n_sketches, delta),
            bernstein(variance, most + kernel, n_sketches, delta),
        )


@dataclass(frozen=True)
class SketchTreeRelativeError(PairBound):
    """The relative error of ``TensorSketch(tree=True)``, by Chebyshev's inequality.

    Parameters
    ----------
    degree : int
        The degree p of the kernel <x, y>^p. For coef0 > 0 the rows have a constant appended.
    cosine : float
        The cosine of the angle between the two rows, or the smallest one if there are many.
    n_inputs : int, default=1
        The number of columns, with the constant if any. It matters only if it exceeds the
        number of features.

    Notes
    -----
    The variance is bounded by the recursion in the Notes of `TensorSketch`, for rows of many small
    entries. For equal rows it is at most 2 (p - 1) / D times the square of the kernel, and terms of
    higher order in p / D, where that of one sketch without a tree is (2^(p+1) - 2) / D.

    References
    ----------
    Ahle et al., Oblivious sketching of high-degree polynomial kernels, SODA 2020.

    Examples
    --------
    >>> from kitchenette.bounds import SketchRelativeError, SketchTreeRelativeError
    >>> SketchTreeRelativeError(degree=8, cosine=0.9).n_components(0.1, delta=0.05)
    39763
    >>> SketchRelativeError(degree=8, cosine=0.9).n_components(0.1, delta=0.05)
    1751333
    """

    degree: int
    cosine: float
    n_inputs: int = 1

    def __post_init__(self) -> None:
        check_count("degree", self.degree)
        checked_number("cosine", abs(self.cosine), most=1)
        check_count("n_inputs", self.n_inputs)

    def _error(self, n_components: int, delta: float) -> float:
        moments = tree_moments(
            self.degree, n_components, self.n_inputs, abs(self.cosine), np.float64(1.0), 0.0
        )
        return chebyshev(float(moments.dot) / self.cosine ** (2 * self.degree) - 1, delta)


def sketch_variance(degree: int, squared_cosine: float, n_components: int) -> float:
    """The largest variance of one sketch at unit rows with this cosine.

    It falls with the sum of x_i^2 y_i^2, so zero is the worst value of that sum.
    """
    p, c, D = degree, squared_cosine, n_components
    first = (1 + c) ** p + (2 * c) ** p - 2 * c**p
    second = (1 + 2 * c) ** p - (1 + c) ** p - (2 * c) ** p + c**p
    return first / D + 2 * second / D / D
