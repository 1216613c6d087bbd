"""Tensor Sketch: polynomial kernels by count sketches and Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kitchenette.kernels import Kernel, Polynomial
from kitchenette.maps.base import FeatureMap, check_choice
from kitchenette.sketching.count_sketch import draw_buckets, draw_signs, tensor_power_sketch


class TensorSketch(FeatureMap):
    """Features for the polynomial kernel (gamma <x, y> + coef0)^degree.

    A row's features are a count sketch of its tensor power, which is never formed. Choose
    it for polynomial kernels, above all homogeneous ones (``coef0=0``) and those of
    low degree, and for sparse rows of any width: the cost of a row grows with the columns
    it stores, not with those it could have.

    Parameters
    ----------
    kernel : Polynomial, default=Polynomial(degree=2)
        The kernel.
    n_components : int, default=1024
        The number of features, any number. Powers of two are the fastest: others cost two
        to six times as much, the more the higher the degree.
    output : {"time", "frequency"}, default="time"
        "time" gives the sketch itself. "frequency" gives its real orthogonal Fourier
        transform, which has the same inner products and costs one transform less; it is
        no longer sparse where the sketch is.
    random_state : int, NumPy generator or None, default=None
        The seed. None draws one; see ``seed_``.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with all its parameters chosen.
    seed_ : int
        The seed that was used; ``random_state=seed_`` draws the same map.
    buckets_ : ndarray of int32, shape (degree, n_inputs)
        The hash functions: where each count sketch puts each input. The inputs are the
        columns and, if ``coef0`` is not zero, one more for the constant.
    signs_ : ndarray of int8, shape (degree, n_inputs)
        The signs that it gives them.
    n_features_in_ : int
        The number of columns seen in fit.

    See Also
    --------
    RandomMaclaurin : For all dot-product kernels; more accurate where coef0 is large.
    RandomKitchenSinks : For kernels of the difference of two rows.

    Notes
    -----
    Write x and y for the rows scaled by sqrt(gamma) with sqrt(coef0) appended, so that the
    kernel is <x, y>^p, p being the degree. The j-th count sketch of x has the entries
    C_j x[b] = sum of s_j(i) x_i over the columns i with h_j(i) = b, for independent uniform
    buckets h_j and signs s_j. Their cyclic convolution is the count sketch of the p-th
    tensor power of x whose hash is h_1(i_1) + ... + h_p(i_p) modulo D, the number of
    features, and whose sign is the product of the signs.

    The inner product of two rows' features has the kernel as its expectation. With
    a = <x, y>^2, b = |x|^2 |y|^2 - s and c = <x, y>^2 - s, where s is the sum of
    x_i^2 y_i^2, its variance is

        [(a + b)^p + (a + c)^p - 2 a^p] / D
        + q [(a + b + c)^p - (a + b)^p - (a + c)^p + a^p] / D^2

    with q = 1 for odd D and q = 2 for even D, whichever the output. For p = 1 it is that of
    a count sketch. In terms of m = |x|^2 |y|^2 the first bracket is at most 2 (2 m)^p and the
    second at most (3 m)^p, so it matters only if D is not well above (3/2)^p. (The bound
    m^p + <x, y>^2p on the first in the paper's Lemma 6 does not hold: it takes all
    tuples of columns to be hashed independently, which those that share a column are not.)

    A larger map does not begin with the smaller one, as it does for the other maps:
    all features depend on their number.

    Cost: O(degree (n_stored + D log D)) per row, where n_stored is the number of columns that
    the row stores; degree times n_inputs stored buckets and signs.

    References
    ----------
    Pham and Pagh, Fast and scalable polynomial kernels via explicit feature maps, KDD 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import TensorSketch
    >>> from kitchenette.kernels import Polynomial
    >>> X = np.random.default_rng(0).normal(size=(100, 30)) / np.sqrt(30)
    >>> kernel = Polynomial(degree=3, coef0=0.5)
    >>> Z = TensorSketch(kernel, n_components=8192, random_state=0).fit_transform(X)
    >>> bool(abs(Z @ Z.T - kernel(X)).mean() < 0.05)
    True
    """

    _overflow_advice = "Scale the data down, or lower the kernel's gamma or degree."

    def __init__(
        self,
        kernel: Kernel = Polynomial(degree=2),
        n_components: int = 1024,
        *,
        output: str = "time",
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.n_components = n_components
        self.output = output
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("output", self.output, ("time", "frequency"))
        if not isinstance(self.kernel, Polynomial):
            raise ValueError(
                f"TensorSketch serves Polynomial kernels alone, which {self.kernel!r} is not. "
                "RandomMaclaurin serves other kernels of the inner product, and "
                "RandomKitchenSinks and Fastfood those of the difference."
            )
        if self.n_components >= 2**31:
            raise ValueError(
                f"n_components must be less than 2**31 for TensorSketch; got {self.n_components}."
            )

    def _draw(self, n_columns: int, dtype: DTypeLike) -> None:
        assert isinstance(self.kernel_, Polynomial)
        p, D = int(self.kernel_.degree), self._n_features_out
        scales = np.full(n_columns, np.sqrt(self.kernel_.gamma))
        if self.kernel_.coef0 > 0:
            scales = np.append(scales, np.sqrt(self.kernel_.coef0))
        self.buckets_ = draw_buckets(p, scales.size, D, self.seed_)
        self.signs_ = draw_signs(p, scales.size, self.seed_)
        self._sketch = tensor_power_sketch(
            self.buckets_,
            self.signs_ * scales,
            D,
            dtype,
            frequency=self.output == "frequency",
        )

    def _drawn_bytes(self, n_columns: int) -> int:
        assert isinstance(self.kernel_, Polynomial)
        # Buckets and signs, and the tables of the first transform.
        return 64 * int(self.kernel_.degree) * (n_columns + 1) + 512 * self.n_components

    def _write(self, X: Any, out: NDArray[Any]) -> bool:
        return self._sketch.astype(X.dtype).features(X, out)
