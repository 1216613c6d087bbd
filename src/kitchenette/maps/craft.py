"""Compact random feature maps (Hamid, Xiao, Gittens and DeCoste 2014)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import clone

from kitchenette.kernels import Kernel, Polynomial, ShiftInvariantKernel
from kitchenette.maps.base import PROBES, RowTransformer
from kitchenette.maps.kitchen_sinks import RandomKitchenSinks
from kitchenette.maps.random_maclaurin import RandomMaclaurin
from kitchenette.maps.srht import draw_srht, srht_bytes
from kitchenette.sketching.random import Stream
from kitchenette.sketching.rows import blocks_of_rows

UP_FACTOR = 8  # wide features per compact one, unless `up` says how many
WIDE_BYTES = 1 << 24  # of wide features at a time: they stay in the last level of cache
FEWEST_ROWS = 8  # at a time, so that all threads have work


class CRAFTMap(RowTransformer):
    """A wide random feature map, projected down while it is computed.

    Many random features have a low rank in practice: an SRHT of a wide map to few columns
    approximates the kernel better than as many features drawn at once. The wide features
    exist in cache only, a few rows at a time.

    Parameters
    ----------
    up : map or Kernel, default=Polynomial(degree=3)
        The map up: RandomMaclaurin, TensorSketch or any other map of this package. Its
        ``n_components`` is the paper's D; None stands for 8 times ``n_components``. A
        kernel stands for RandomMaclaurin of it with so many features, or RandomKitchenSinks
        if it is shift-invariant. A map without a random_state of its own is drawn from
        this map's seed.
    n_components : int, default=1024
        The number of output columns, the paper's E.
    random_state : int, NumPy generator or None, default=None
        The seed. None draws one; see ``seed_``.

    Attributes
    ----------
    up_ : map
        The fitted wide map.
    kernel_ : Kernel
        Its kernel.
    seed_ : int
        The seed that was used; ``random_state=seed_`` draws the same map.
    n_features_in_ : int
        The number of columns seen in fit.

    See Also
    --------
    SRHT : The projection by itself.
    TEFM : Compact features that are chosen from the data.

    Notes
    -----
    Expectation: the kernel, if ``up`` is unbiased. Variance: that of ``up`` with D features, plus
    that of an SRHT from D to E columns at the wide features z: about
    (|z(x)|^2 |z(y)|^2 + <z(x), z(y)>^2) / E, which is (k(x, x) k(y, y) + k(x, y)^2) / E. A
    plain map with E features has E times less of the variance of one feature, which grows
    exponentially with the degree of a polynomial kernel, while the projection's does not.
    For cosines and sines, one feature has less variance than that already: there is
    nothing to gain for shift-invariant kernels (TEFM is made for them).

    Cost: that of ``up``, and O(D log D + E) per row. Memory beyond input and output: a few
    megabytes, or a few rows of wide features.

    References
    ----------
    Hamid, Xiao, Gittens and DeCoste, Compact random feature maps, ICML 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import CRAFTMap, RandomMaclaurin
    >>> from kitchenette.kernels import Polynomial
    >>> from kitchenette.metrics import kernel_error
    >>> X = np.random.default_rng(0).normal(size=(200, 30)) + 1
    >>> X /= np.linalg.norm(X, axis=1, keepdims=True)
    >>> kernel = Polynomial(degree=7)
    >>> plain = RandomMaclaurin(kernel, 512, degrees="geometric", random_state=0).fit(X)
    >>> compact = CRAFTMap(kernel, 512, random_state=0).fit(X)
    >>> kernel_error(compact, X) < kernel_error(plain, X)
    True
    """

    _stored: ClassVar[dict[str, Any]] = {**RowTransformer._stored, "up_": RowTransformer}

    def __init__(
        self,
        up: Any = Polynomial(degree=3),
        n_components: int = 1024,
        *,
        random_state: Any = None,
    ):
        self.up = up
        self.n_components = n_components
        self.random_state = random_state

    @property
    def kernel_(self) -> Kernel:
        """The wide map's kernel."""
        kernel: Kernel = self.up_.kernel_
        return kernel

    def _choose(self, X: Any, sample: Any) -> None:
        factor = UP_FACTOR * self._n_features_out
        self.up_ = wide_map(self.up, factor, self.seed_, "CRAFTMap").fit(X)

    def _check_choices(self, n_columns: int) -> None:
        check_fitted_for("up_", self.up_, n_columns)

    def _draw(self, n_columns: int, dtype: DTypeLike) -> None:
        # Independent of the wide map, also if that has the same seed.
        seed = int(Stream(self.seed_, "down").words(1, 1)[0, 0])
        self._down = draw_srht(self._n_features_out, self.up_._n_features_out, seed, dtype)

    def _drawn_bytes(self, n_columns: int) -> int:
        width = self.up_._n_features_out
        return srht_bytes(self.n_components, width) + 8 * PROBES * width

    def _probe_scale(self) -> Any:
        return self.up_._probe_scale()

    def _write(self, X: Any, out: NDArray[Any]) -> bool:
        down = self._down.astype(X.dtype)
        width = self.up_._n_features_out
        count = max(FEWEST_ROWS, WIDE_BYTES // (X.dtype.itemsize * width))
        wide = np.empty((min(count, X.shape[0]), width), dtype=X.dtype)
        fine = True
        for rows, block in blocks_of_rows(X, count):
            Z = wide[: block.shape[0]]
            fine &= self.up_._write(block, Z)
            fine &= down.features(Z, out[rows])
        return fine


def wide_map(given: Any, n_components: int, seed: int, owner: str) -> Any:
    """The map that a parameter stands for, not fitted.

    ``n_components`` and the seed are for maps that leave them open.
    """
    if isinstance(given, Kernel):
        kind = RandomKitchenSinks if isinstance(given, ShiftInvariantKernel) else RandomMaclaurin
        given = kind(given, n_components)
    if not isinstance(given, RowTransformer) or "kernel" not in given.get_params(deep=True):
        raise ValueError(
            f"{owner} needs a feature map of this package, such as RandomMaclaurin(), or a kernel; "
            f"got {given!r}."
        )
    made = clone(given)
    if made.n_components is None:
        made.set_params(n_components=n_components)
    if made.random_state is None:
        made.set_params(random_state=int(Stream(seed, "wide map").words(1, 1)[0, 0]))
    return made


def check_fitted_for(name: str, inner: Any, n_columns: int) -> None:
    """Refuse an inner map that was not fitted on rows of this width."""
    if getattr(inner, "n_features_in_", None) != n_columns or not hasattr(inner, "kernel_"):
        raise ValueError(f"{name} must be a map that was fitted on rows of {n_columns} columns.")
