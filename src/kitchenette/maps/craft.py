"""Compact random feature maps (Hamid, Xiao, Gittens and DeCoste 2014)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from kitchenette.kernels import Kernel, Polynomial, ShiftInvariantKernel
from kitchenette.maps._base import RowTransformer, unchanged_on_error
from kitchenette.maps.kitchen_sinks import RandomKitchenSinks
from kitchenette.maps.random_maclaurin import RandomMaclaurin
from kitchenette.maps.srht import draw_srht
from kitchenette.sketching.random import Stream, seed_from
from kitchenette.sketching.rows import blocks_of_rows

UP_FACTOR = 8  # wide features per compact one, unless `up` says how many
WIDE_BYTES = 1 << 23  # of wide features at a time: they stay in the last level of cache
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

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the map.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_columns)
            What ``up`` wants to see.
        y : ignored

        Returns
        -------
        self : object
            The fitted map.
        """
        with unchanged_on_error(self):
            X = self._validated(X, reset=True)
            self._check_parameters()
            self.seed_ = seed_from(self.random_state)
            self._n_features_out = int(self.n_components)
            self.up_ = wide_map(
                self.up, UP_FACTOR * self._n_features_out, self.seed_, type(self).__name__
            ).fit(X)
            self.kernel_ = self.up_.kernel_
            width = self.up_._n_features_out
            # Independent of the wide map, also if that has the same seed.
            down_seed = int(Stream(self.seed_, "down").words(1, 1)[0, 0])
            self._down = draw_srht(self._n_features_out, width, down_seed, X.dtype)
        return self

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
