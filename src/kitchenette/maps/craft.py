"""Compact random feature maps (Hamid, Xiao, Gittens and DeCoste 2014)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone

from kitchenette.files.fields import Shape
from kitchenette.files.registry import storable
from kitchenette.kernels import Polynomial
from kitchenette.maps.compact import CompactMap, check_inner
from kitchenette.maps.srht import SRHT, SRHTSpecification
from kitchenette.sketching.dense import matrix_product
from kitchenette.sketching.operators import Operator, chain
from kitchenette.sketching.random import Stream, seed_from
from kitchenette.sketching.specification import Cost, Specification

UP_FACTOR = 8  # wide features per compact one, if `up` does not give their number


@storable
@dataclass(frozen=True, kw_only=True, eq=False)
class CRAFTSpecification(Specification):
    """A wide map and a projection to fewer columns."""

    up: Specification  # the wide map
    down: Specification  # an SRHT, or a dense projection

    def draw(self, dtype: np.dtype[Any]) -> Operator:
        return chain(self.up.operator(dtype), self.down.operator(dtype))

    def cost(self) -> Cost:
        return Cost(0, 0)  # both parts are counted as objects of their own

    def probe_scale(self) -> Any:
        return self.up.probe_scale()

    def check(self) -> None:
        super().check()
        check_inner("up", self.up, self.n_columns)
        if not isinstance(self.down, SRHTSpecification | DenseProjectionSpecification):
            raise ValueError("down must be a linear projection.")
        check_inner("down", self.down, self.up.n_components)
        if self.down.n_components != self.n_components:
            raise ValueError("down must have as many components as the map.")


@storable
@dataclass(frozen=True, kw_only=True, eq=False)
class DenseProjectionSpecification(Specification):
    """Products with the rows of a matrix of shape (n_components, n_columns)."""

    matrix: Annotated[NDArray[np.float64], Shape("n_components", "n_columns")]

    def draw(self, dtype: np.dtype[Any]) -> Operator:
        return matrix_product(self.matrix.T, dtype)

    def cost(self) -> Cost:
        return Cost(16 * self.matrix.size, 2 * self.matrix.size)


@storable
class CRAFTMap(CompactMap):
    """A wide random feature map, projected to fewer columns while it is computed.

    Matrices of many random features have a low rank in practice: an SRHT of a wide map to few
    columns approximates the kernel better than a map with that few features. The wide features
    are computed a few rows at a time and stay in cache.

    Parameters
    ----------
    up : map or Kernel, default=Polynomial(degree=3)
        The wide map: RandomMaclaurin, TensorSketch or any other map, including a scikit-learn
        transformer that treats rows one by one. Its ``n_components`` is the paper's D; None
        stands for 8 times that of this map. A kernel stands for RandomMaclaurin with that many
        features, or RandomKitchenSinks if it is shift-invariant. If its random_state is None,
        the wide map is drawn from the seed of this map.
    n_components : int, default=1024
        The number of output columns, the paper's E, at most D.
    down : projection or None, default=None
        The projection, a linear map that preserves inner products in expectation. None is
        `SRHT`. Any other is fitted on rows of D columns and must then have a matrix
        ``components_``, like `sklearn.random_projection.GaussianRandomProjection`; it costs
        O(D E) per row. Its ``n_components`` is set to that of this map.
    random_state : int, NumPy generator or None, default=None
        The seed. None draws one; see ``seed_``.

    Attributes
    ----------
    up_ : map
        The fitted wide map.
    down_ : SRHT
        The fitted projection, if it is an `SRHT`.
    kernel_ : Kernel
        The kernel of the wide map.
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
    map of E features without projection has 1 / E of the variance of one feature, which grows
    exponentially with the degree of a polynomial kernel; the variance of the projection does
    not. A pair of cosine and sine has less variance than the projection adds, so there is
    nothing to gain for shift-invariant kernels (use TEFM for them).

    Cost: that of ``up``, plus O(D log D + E) per row. Memory beyond input and output: a few
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

    specification_class = CRAFTSpecification
    inner_name, inner_factor = "up", UP_FACTOR
    fitted_types: ClassVar[dict[str, Any]] = {**CompactMap.fitted_types, "up_": Any}

    def __init__(
        self,
        up: Any = Polynomial(degree=3),
        n_components: int = 1024,
        *,
        down: Any = None,
        random_state: Any = None,
    ):
        self.up = up
        self.n_components = n_components
        self.down = down
        self.random_state = random_state

    @property
    def down_(self) -> SRHT:
        """The fitted projection; an AttributeError if it is not an `SRHT`."""
        specification = self.fitted().down
        if not isinstance(specification, SRHTSpecification):
            raise AttributeError("The projection of this CRAFTMap is not an SRHT.")
        made = SRHT(specification.n_components, random_state=specification.seed)
        made.specification_, made.n_features_in_ = specification, specification.n_columns
        return made

    def specify(self, inner: Specification, seed: int, X: Any, sample: Any) -> Specification:
        # The projection is independent of the wide map even if that was given the same seed.
        down_seed = int(Stream(seed, "down").words(1, 1)[0, 0])
        down = self._projection(inner.n_components, down_seed, sample.dtype)
        return self.specified(sample, seed, up=inner, down=down)

    def _checked_down(self) -> Any:
        """The projection, if it is an object with the right parameters that ignores the data."""
        if isinstance(self.down, type):
            raise ValueError(
                f"down must be an object, not a class: write {self.down.__name__}(...) with "
                "parentheses."
            )
        has_parameters = hasattr(self.down, "fit") and hasattr(self.down, "get_params")
        if not has_parameters or "n_components" not in self.down.get_params():
            raise ValueError(
                "down must be None, SRHT(n_components) or a linear projection such as "
                f"GaussianRandomProjection(); got {self.down!r}."
            )
        if type(self.down).__module__.startswith("sklearn.decomposition"):
            raise ValueError(
                "down must be a random projection, which does not depend on the rows, such as "
                f"GaussianRandomProjection(); {type(self.down).__name__} is fitted to them. TEFM "
                "chooses compact features from the data."
            )
        return self.down

    def _projection(self, width: int, seed: int, dtype: np.dtype[Any]) -> Specification:
        n = int(self.n_components)
        sizes: dict[str, Any] = {"n_columns": width, "n_components": n, "precision": dtype.name}
        if self.down is None or isinstance(self.down, SRHT):
            given = getattr(self.down, "random_state", None)
            return SRHTSpecification(seed=seed if given is None else seed_from(given), **sizes)
        projection = clone(self._checked_down()).set_params(n_components=n)
        if projection.get_params().get("random_state", 0) is None:
            projection.set_params(random_state=seed % 2**32)
        projection.fit(np.zeros((1, width)))
        if not hasattr(projection, "components_"):
            raise ValueError(
                f"down must have a matrix components_ when it is fitted, which "
                f"{type(projection).__name__} has not."
            )
        matrix = projection.components_
        matrix = matrix.toarray() if sp.issparse(matrix) else np.asarray(matrix)
        return DenseProjectionSpecification(seed=seed, matrix=matrix.astype(np.float64), **sizes)
