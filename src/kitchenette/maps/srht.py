"""The subsampled randomized Hadamard transform."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kitchenette.files.registry import storable
from kitchenette.maps.base import RowMap
from kitchenette.sketching.operators import Operator
from kitchenette.sketching.products import HadamardProducts, draw_hadamard_products
from kitchenette.sketching.specification import Cost, Specification
from kitchenette.sketching.structured import TILE, padded_block


@storable
@dataclass(frozen=True, kw_only=True, eq=False)
class SRHTSpecification(Specification):
    """Rows of randomly signed Hadamard matrices, scaled so that inner products are unbiased."""

    def products(self) -> HadamardProducts:
        """The random signs and the sampled rows of the transform, as products of one factor."""
        degrees = np.ones(self.n_components, dtype=np.int32)
        weights = np.full(self.n_components, 1 / np.sqrt(self.n_components))
        return draw_hadamard_products(degrees, weights, self.n_columns, self.seed, self.precision)

    def draw(self, dtype: np.dtype[Any]) -> Operator:
        return self.products().astype(dtype).operator()

    def cost(self) -> Cost:
        numbers = self.n_components + padded_block(self.n_columns) + TILE
        return Cost(128 * numbers, 200 * numbers)


@storable
class SRHT(RowMap):
    """Random projection by the subsampled randomized Hadamard transform.

    Rows are multiplied by random signs, Walsh-Hadamard transformed, and ``n_components``
    distinct coordinates of the result are kept. Inner products and distances are preserved in
    expectation, as with scikit-learn's GaussianRandomProjection, but a row costs
    O(d log d) instead of O(d n_components), and the map stores a few numbers per component.

    Parameters
    ----------
    n_components : int
        The number of output columns, any number.
    random_state : int, NumPy generator or None, default=None
        The seed. None draws one; see ``seed_``.

    Attributes
    ----------
    seed_ : int
        The seed that was used; ``random_state=seed_`` draws the same projection.
    n_features_in_ : int
        The number of columns seen in fit.

    See Also
    --------
    CRAFTMap : A feature map followed by this projection.

    Notes
    -----
    d is the number of columns padded to a power of two. Output columns beyond the first d come
    from further blocks with independent signs. A block whose d coordinates are all kept preserves
    inner products exactly.

    Expectation: <x, y>. Variance, for n_components of at most d:
    (m - <x, y>^2) (d - n_components) / (n_components (d - 1)) with
    m = |x|^2 |y|^2 + 2 (<x, y>^2 - sum of x_i^2 y_i^2).

    Cost: O(d log d + n_components) per row.

    References
    ----------
    Tropp, Improved analysis of the subsampled randomized Hadamard transform, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import SRHT
    >>> X = np.random.default_rng(0).normal(size=(20, 5000))
    >>> X /= np.linalg.norm(X, axis=1, keepdims=True)
    >>> Z = SRHT(1000, random_state=0).fit_transform(X)
    >>> bool(abs(Z @ Z.T - X @ X.T).max() < 0.15)
    True
    """

    def __init__(self, n_components: int, *, random_state: Any = None):
        self.n_components = n_components
        self.random_state = random_state

    specification_class = SRHTSpecification

    def choose(
        self, sample: Any, seed: int, sample_weight: Any = None, observed: Any = None
    ) -> SRHTSpecification:
        return self.specified(sample, seed)
