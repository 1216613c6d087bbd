"""Kernel principal components from statistics of random features."""

from __future__ import annotations

from typing import Any, Self

from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags

from kitchenette.data.border import in_parts
from kitchenette.estimators.base import KernelEstimator
from kitchenette.files.registry import storable
from kitchenette.learning.linear_model import PrincipalComponents
from kitchenette.maps.fastfood import Fastfood
from kitchenette.training.problem import Components


def of_components(name: str, doc: str) -> property:
    """A read-only attribute that is computed when it is first needed after new rows."""
    return property(lambda self: getattr(self.solved_components(), name), doc=doc)


@storable
class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """Kernel principal component analysis, in one pass over any number of rows.

    Principal components of the features of a map, which approximate those of its kernel. The matrix
    of all pairs of rows, which `sklearn.decomposition.KernelPCA` needs, is never computed: rows are
    summed up in statistics whose size does not depend on their number, so it can go on learning
    from batches, and those of different rows can be merged.

    Parameters
    ----------
    n_components : int, default=2
        The number of components; at most the number of features of the map, and less than that of
        rows.
    feature_map : transformer or None, default=None
        The map, which decides the kernel: a map of this package, any scikit-learn transformer that
        treats rows one by one, a pipeline, or a fitted map in a `sklearn.frozen.FrozenEstimator`.
        None is ``Fastfood()``: 1024 features of a Gaussian kernel whose length scale is the median
        distance of rows. Columns of different units need a scaler before it.
    whiten : bool, default=False
        Whether to divide each component by its standard deviation, so that all have a variance of
        one. Components without variance are zero.
    random_state : int, NumPy generator or None, default=None
        The seed of the map and of the steps of a pipeline that have none of their own. None draws
        one; see ``seed_``.
    verbose : bool, default=False
        Show progress while rows are learned: a bar if rich is installed, lines if not.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_map_features)
        The directions of largest variance in the space of the features: orthonormal, in descending
        order of variance, with the sign that makes the largest entry positive.
    mean_ : ndarray of shape (n_map_features,)
        The mean of the features.
    eigenvalues_ : ndarray of shape (n_components,)
        The largest eigenvalues of the centered kernel matrix, as in scikit-learn's KernelPCA.
    explained_variance_ : ndarray of shape (n_components,)
        The variance of each component, ``eigenvalues_ / (n - 1)``, as in scikit-learn's PCA.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        The same divided by the variance of all features together.
    feature_map_ : transformer
        The fitted map.
    statistics_ : LeastSquares
        The sufficient statistics of the rows seen; ``statistics_.n_rows`` is their number. Its one
        target is zero.
    seed_ : int
        The seed that was used.
    n_features_in_ : int
        The number of columns of the data.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        The names of the columns, if there are any.

    See Also
    --------
    sklearn.decomposition.KernelPCA : The exact components, for up to some thousand rows.
    sklearn.decomposition.IncrementalPCA : Batches for linear components, approximately.
    TEFM : A feature map that consists of whitened components of another map.

    Notes
    -----
    *Model.* With features z(x) whose inner products approximate a kernel k, mean m and
    G = sum over the rows of (z - m)(z - m)', the components are eigenvectors v of G, and
    `transform` gives v'(z(x) - m). The eigenvalues of G that are not zero are those of the centered
    kernel matrix of the features, and the projections of the rows equal those of scikit-learn's
    KernelPCA with this kernel, up to signs. A random feature map has an error of about
    1 / sqrt(n_map_features) in each entry of the kernel matrix, so directions whose eigenvalues
    differ by more than n / sqrt(n_map_features) are those of the exact kernel.

    *Weights* say how much rows matter relative to each other: multiplying all of them changes
    only ``eigenvalues_``. The variances are G / (sum of weights) times n / (n - 1) for n
    rows.

    *Batches.* `partial_fit` and `merge` only update the statistics, exactly; the components are
    computed when they are next needed, and then cached. A map that depends on data is fitted on the
    first batch.

    *Cost.* n_map_features^2 operations for a row, and 4 n_map_features^2 bytes, three times that
    while the components are computed. Few components take tens to hundreds of products with G,
    by Lanczos' method; more than a tenth of the features take a full eigendecomposition.
    `transform` takes n_components * n_map_features operations for a row in addition to its
    features, which are never all in memory.

    References
    ----------
    Schölkopf, Smola and Müller, Nonlinear component analysis as a kernel eigenvalue problem, 1998.

    Lopez-Paz, Sra, Smola, Ghahramani and Schölkopf, Randomized nonlinear component analysis, 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_circles
    >>> from kitchenette import Fastfood, KernelPCA
    >>> from kitchenette.kernels import Gaussian
    >>> X, y = make_circles(1000, factor=0.3, noise=0.05, random_state=0)
    >>> pca = KernelPCA(1, Fastfood(Gaussian(0.4), random_state=0))
    >>> inner = pca.fit_transform(X)[:, 0] > 0
    >>> bool(np.mean(inner == y) > 0.99 or np.mean(inner != y) > 0.99)
    True

    Rows may come in batches:

    >>> batches = KernelPCA(1, Fastfood(Gaussian(0.4), random_state=0))
    >>> for start in range(0, 1000, 100):
    ...     batches = batches.partial_fit(X[start : start + 100])
    >>> np.allclose(batches.transform(X), pca.transform(X))
    True
    """

    n_components: Any
    whiten: Any
    random_state: Any
    verbose: Any
    problem_class = Components
    default_map = "None"
    map_keyword = "feature_map="
    abilities = "transforms rows", "learn from more of them, or merge with others"

    components_ = of_components("components", "The directions of largest variance.")
    mean_ = of_components("mean", "The mean of the features.")
    eigenvalues_ = of_components(
        "eigenvalues", "The largest eigenvalues of the centered kernel matrix."
    )
    explained_variance_ = of_components("explained_variance", "The variances of the components.")
    explained_variance_ratio_ = of_components(
        "explained_variance_ratio", "The parts of the variance that the components explain."
    )

    def __init__(
        self,
        n_components: int = 2,
        feature_map: Any = None,
        *,
        whiten: bool = False,
        random_state: Any = None,
        verbose: bool = False,
    ):
        self.n_components = n_components
        self.feature_map = feature_map
        self.whiten = whiten
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    # ------------------------------------------------------------ training

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame of shape (n_rows, n_columns), or Source
            Rows; the feature map is fitted on the rows of the first call.
        y : ignored
        sample_weight : array-like of shape (n_rows,), optional
            Weights, as in `fit`.

        Returns
        -------
        self : KernelPCA
            This transformer.
        """
        return self._updated(X, None, sample_weight)

    # ------------------------------------------------------------ using it

    @in_parts
    def transform(self, X: Any) -> NDArray[Any]:
        """Project rows on the components.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame of shape (n_rows, n_columns), or Source
            Rows.

        Returns
        -------
        projections : ndarray of shape (n_rows, n_components)
            float32 if the features of the map are, which those of float32 rows usually are, else
            float64.
        """
        projections, dtype = self.outputs(X)
        return projections.astype(dtype, copy=False)

    def solved_components(self) -> PrincipalComponents:
        """The components, computed if they are out of date; an AttributeError before `fit`."""
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"This {type(self).__name__} is not fitted yet; call fit first.")
        components: PrincipalComponents = self.model_.solution
        return components

    @property
    def _n_features_out(self) -> int:  # used by scikit-learn's mixin
        return int(self.solved_components().eigenvalues.size)

    def _unfitted_map(self) -> Any:
        return Fastfood() if self.feature_map is None else self.feature_map
