"""AutoMap: a feature map whose kernel, scales and width are chosen from data, and `choose`."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Real
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, check_array, check_consistent_length

from kitchenette.columns.preparation import (
    ColumnAffine,
    Columns,
    LinearColumns,
    PiecewiseLinear,
    Sequence,
    UnitRows,
)
from kitchenette.data.border import as_source
from kitchenette.data.drawing import Drawing, DrawnRows, FirstRows
from kitchenette.data.keys import row_keys
from kitchenette.data.opening import source
from kitchenette.data.rows import is_table, rows_of_positive_weight, table, validated
from kitchenette.data.tables import has_numbers_only, is_frame
from kitchenette.data.targets import array_of_targets
from kitchenette.files.fields import Shape
from kitchenette.files.registry import storable
from kitchenette.kernels import Kernel, ShiftInvariantKernel
from kitchenette.learning.least_squares import checked_weights
from kitchenette.maps.base import RowMap
from kitchenette.maps.prepared import PreparedSpecification
from kitchenette.maps.table_map import TableMap
from kitchenette.parameters import check_choice, check_count, replaced_at_once
from kitchenette.resources import one_blas_thread
from kitchenette.selection.choice import Choice
from kitchenette.selection.columns import (
    LEARNED,
    SCALES,
    TINY_SPREAD,
    too_small_columns,
)
from kitchenette.selection.encodings import decide_with_encoding, encoded_importances
from kitchenette.selection.pilot import Pilot
from kitchenette.selection.search import Plan
from kitchenette.selection.settings import (
    EFFORTS,
    SEARCH,
    effort_of,
    most_components,
    pilot_sizes,
)
from kitchenette.selection.targets import TASKS, pilot_targets, task_of
from kitchenette.sketching.random import seed_from

Array = NDArray[np.float64]


@storable
class AutoMap(RowMap):
    """A feature map chosen by how well its features predict the targets.

    On a sample of the rows it compares kernels, scales of the columns and widths by the errors on
    rows held out. Length scales are learned: columns in which the target changes much get small
    ones, and useless columns are all but ignored. No scaling of the data is needed. It is the
    default map of `KernelRegressor` and `KernelClassifier`.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        The number of features. "auto" takes more of them for more rows, as long as they make
        predictions better and within the effort: 1024 to 4096 with effort="balanced".
    kernel : "auto" or ShiftInvariantKernel, default="auto"
        The kernel; its length scale is chosen here.
    scales : {"auto", "common", "columns", "compressed", "ranks", "learned", "full"}, default="auto"
        "common": one length scale for all columns, for columns of the same unit, such as pixels.
        "columns": in proportion to the spread of each column. "compressed" and "ranks": the
        columns are transformed before, by a logarithm on both sides of the median, or to ranks;
        for heavy tails; see Notes for what is done beyond the data. "learned": the best of these,
        then learned from the derivatives of the model. "full": after that a linear map of the
        columns, if it helps, for functions of sums or differences of columns. "auto" compares all
        of these, the last one up to 64 columns, and takes learned scales and linear maps only if
        they are better by more than chance explains.
    task : {"classification", "regression"} or None, default=None
        What is predicted; None is the task of the estimator that the map belongs to, and decides
        by the type of the targets without one.
    effort : {"fast", "balanced", "best"} or float, default="balanced"
        How long the search and the final fit may take: "fast" about a second for some thousand
        rows, "balanced" up to eight for 20,000 rows of 20 columns, "best" up to one minute. A
        number is about how many seconds the search may take. The result depends on the effort, not
        on the time that was really taken.
    random_state : int, NumPy generator or None, default=None
        The seed. None draws one; see ``seed_``.

    Attributes
    ----------
    choice_ : Choice
        What was tried, what was chosen, and why.
    kernel_ : Kernel
        The kernel of the prepared columns; its length scale is one.
    length_scale_ : ndarray of shape (n_features_in_,)
        The length scale of each column; infinity for columns that are ignored. For "compressed"
        and "ranks", the average over the range of the column. After a linear map, the distance
        along the column that is one length scale.
    feature_importances_ : ndarray of shape (n_features_in_,)
        How much the target changes with each column: the root mean square of the derivative times
        the spread of the column, on the sample, with a sum of one.
    seed_ : int
        The seed that was used.
    n_features_in_ : int
        The number of columns seen in fit.

    See Also
    --------
    kitchenette.choose : The same choice as a report.
    KernelRegressor.importance : Importances of the columns for a fitted model.

    Notes
    -----
    The sample has at most 8000 distinct rows, those with the smallest hash values of columns and
    targets for this seed, with the weights of all their copies. So the choice depends neither on
    the order of the rows, nor on whether equal rows are repeated or weighted. Of a source of files
    it is drawn by the places of the rows instead, with ``passes=1``. Some of its rows are held
    out (each row once, in folds, if there are less than 2000). A more elaborate candidate replaces
    a simpler one if its squared error on these rows is smaller by more than half a standard error
    of the difference (a whole one if there are less than 500 rows). Learned length scales are one
    over the root mean square of the derivative in the column, which follows from the statistics of
    the features (see `kitchenette.selection.importance`), a few times over. The linear map of
    "full" is the symmetric root of the average outer product of gradients, of which these are the
    diagonal. It has a number for each pair of columns, so it must win by three standard errors (one
    if it saves a tenth of the loss) with no more wrong classes. Rows then cost n_columns^2 more
    operations.

    A model of many columns may see nothing of a function of a few of them, such as a wave or a
    parity, and then has no derivatives to learn from. So the sample is also screened by tables: for
    the effects of each column, of each pair in at most 8 x 8 cells, and of the signs of each triple
    (up to 100 columns). If at most half of the columns have one, and these alone are better than
    all columns by two standard errors, scales are learned from there, too, and taken if they are
    better by as much than those learned from all columns, with no more wrong classes.

    Of candidates whose losses differ by less than a ten-thousandth, the one that is tried first
    counts as the better one, and candidates are compared in one precision, dense up to 256 columns.
    So float32 and float64, dense and sparse copies of the same rows lead to the same choice; sparse
    rows of more than 256 columns are not centered, so that zeros stay zeros.

    "compressed" and "ranks" are piecewise linear functions between the smallest and the largest
    number of the sample, and constant beyond them, so that a new extreme number of a heavy tail is
    predicted like the largest one seen. The standard deviations of predictions do not trust that:
    for them a number beyond the data by less than a tenth of their distance from the median is
    near them, and further out the functions rise as fast as in "columns", for a thousand spreads.
    The ranges of the prepared columns of the sample are kept with the map. Beyond them the standard
    deviation is at least that of a Gaussian process of this kernel (see
    `kitchenette.selection.extrapolation`), so that it returns to that of the prior however many
    rows there are, unless only columns are far away that the target hardly depends on, or the
    length scale is as large, for a target that is nearly linear. Sparse rows of more than 256
    columns have no such ranges.

    Columns of up to 16 different whole numbers may be codes of categories, and categories may have
    an order. On at least 500 rows, such numbers are also tried as categories, and indicators of
    categories (columns side by side, of which exactly one is one in every row) as the number of the
    one among them. This is taken if it is better by a standard error, with no more wrong classes,
    for a few simple candidates and after a search of its own. It needs the automatic kernel and
    scales.

    A number that many rows have in a column, far from all others, such as 100 among strengths of
    signals between -100 and 0, often stands for a missing one. It is moved beside the smallest or
    the largest other number if that helps. Wide sparse rows, such as hashed text, get linear or
    quadratic features of unit rows by `TensorSketch` instead.

    References
    ----------
    Radhakrishnan et al., Mechanism for feature learning in neural networks and
    backpropagation-free machine learning models, Science 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import AutoMap
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 10))
    >>> y = np.sin(3 * X[:, 4]) + 0.1 * rng.normal(size=1000)
    >>> auto = AutoMap(n_components=256, random_state=0).fit(X, y)
    >>> int(auto.feature_importances_.argmax())
    4
    """

    specification_class = PreparedSpecification
    specification_: PreparedSpecification
    choice_: Choice
    column_spreads_: Array | None
    feature_importances_: Array | None

    def __init__(
        self,
        n_components: int | str = "auto",
        *,
        kernel: Any = "auto",
        scales: str = "auto",
        task: str | None = None,
        effort: str | float = "balanced",
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.kernel = kernel
        self.scales = scales
        self.task = task
        self.effort = effort
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    # ------------------------------------------------------------ fitting

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose and draw the map.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
            Rows, of which a sample is used.
        y : array-like of shape (n_rows,) or (n_rows, n_targets)
            What is to be predicted from the features.

        Returns
        -------
        self : object
            The fitted map.
        """
        return self.fit_supervised(X, y)

    def fit_rows(
        self,
        X: Any,
        sample_weight: NDArray[np.float64] | None = None,
        drawn: DrawnRows | FirstRows | None = None,
        everything: Any = None,
    ) -> Self:
        """Not possible: this map needs targets; see `fit_supervised`."""
        return self.fit_supervised(X, None, sample_weight)

    def fit_supervised(
        self,
        X: Any,
        y: Any,
        sample_weight: NDArray[np.float64] | None = None,
        population: int | None = None,
        copies: NDArray[np.int64] | None = None,
        keys: NDArray[np.uint64] | None = None,
    ) -> Self:
        """`fit` with sample weights.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
            Rows.
        y : array-like of shape (n_rows,) or (n_rows, n_targets)
            What is to be predicted from the features.
        sample_weight : ndarray of shape (n_rows,), optional
            How often each row counts; rows of weight zero are ignored.
        population : int, optional
            The number of distinct rows of which these are a sample.
        copies : ndarray of shape (n_rows,), optional
            How often each of the distinct rows of a sample was there.
        keys : ndarray of shape (n_rows,), optional
            The increasing hash values by which a sample was drawn with the seed of this map.

        Returns
        -------
        self : object
            The fitted map.
        """
        source = as_source(X, y, sample_weight)
        if source.whole() is None:
            sample = source.drawn(seed_from(self.random_state))
            of_sample = sample.y, sample.weight, sample.population, sample.copies
            return self.fit_sample(
                source, sample, lambda draft, rows: draft.fit_supervised(rows, *of_sample)
            )
        with replaced_at_once(self) as draft:
            draft.check_parameters()
            if y is None:
                raise ValueError(
                    "AutoMap requires y to be passed, but the target y is None: it chooses by how "
                    "well the features predict y."
                )
            X = table(X)
            y = check_array(array_of_targets(y), ensure_2d=False, dtype=None, input_name="y")
            check_consistent_length(X, y)
            if sample_weight is not None:
                sample_weight = checked_weights(sample_weight, X.shape[0])
            y = rows_of_positive_weight(y, sample_weight)[0]
            copies = None if copies is None else rows_of_positive_weight(copies, sample_weight)[0]
            keys = None if keys is None else rows_of_positive_weight(keys, sample_weight)[0]
            X, sample_weight = rows_of_positive_weight(X, sample_weight)
            seed = seed_from(draft.random_state)
            if keys is None or copies is None:
                drawn = Drawing(SEARCH.pilot_rows, seed).of_rows(X, y, sample_weight, copies)
            else:
                weights = np.ones(keys.size) if sample_weight is None else sample_weight
                drawn = DrawnRows.of(X, y, weights, copies, keys).first(SEARCH.pilot_rows)
            draft._fit(drawn, y, seed, drawn.population if population is None else population)
            draft.specification_.operator(draft.specification_.precision)
        return self

    def _fit(self, drawn: DrawnRows, y: Any, seed: int, n_rows: int) -> None:
        counts = drawn.counts(drawn.observation_rule(n_rows))
        effort, is_automatic = effort_of(self.effort), self.n_components == "auto"
        most = most_components(n_rows * counts.mean(), effort)
        n_components = most if is_automatic else int(self.n_components)
        sizes = pilot_sizes(n_rows, drawn.X.shape[1], n_components, effort, counts.mean())
        drawn, counts = drawn.first(sizes.n_rows), counts[: sizes.n_rows]
        rows, labels = validated(self, drawn.X, reset=True), np.asarray(drawn.y)
        precision, rows = rows.dtype.name, to_compare(rows)
        order = own_order(rows, labels)
        rows, task = rows[order], task_of(y) if self.task is None else self.task
        weights, counts = drawn.weights[order], counts[order]
        targets = pilot_targets(labels[order], task, seed, weights)
        kernel = None if isinstance(self.kernel, str) else with_unit_length(self.kernel)
        pilot = Pilot(rows, targets, weights, seed, counts, complete=len(order) >= n_rows)
        # The matrices are so small that the threads of a BLAS would mostly wait for each other.
        with one_blas_thread(sizes.n_final):
            plan = Plan(sizes, effort, n_components, is_automatic, n_rows * counts.mean())
            decision, encoding = decide_with_encoding(pilot, plan, kernel, self.scales, seed)
        self._warn_of_small_columns(rows)
        self.specification_ = decision.candidate.specification(
            decision.n_components, seed, precision
        )
        self.choice_ = decision.choice
        self.column_spreads_ = decision.spreads
        self.feature_importances_ = decision.importances
        if encoding is not None:
            self.specification_ = encoding.before(self.specification_)
            sentence = decision.choice.sentence + encoding.sentence()
            self.choice_ = replace(decision.choice, sentence=sentence)
            self.feature_importances_ = encoded_importances(encoding, decision, seed, precision)

    def _warn_of_small_columns(self, rows: Any) -> None:
        """Say which columns are ignored because their numbers are too small."""
        small = too_small_columns(rows)
        if small.size:
            names = vars(self).get("feature_names_in_", range(rows.shape[1]))
            some = ", ".join(repr(names[j]) for j in small[:10].tolist())
            more = ", ..." if small.size > 10 else ""
            warnings.warn(
                f"Columns whose numbers differ by less than about {TINY_SPREAD:g} cannot be scaled "
                f"in float32, and are ignored: {some}{more}. Multiply them by a power of ten.",
                UserWarning,
                stacklevel=2,
            )

    def choose(
        self, sample: Any, seed: int, sample_weight: Any = None, observed: Any = None
    ) -> PreparedSpecification:
        """Not possible without targets; see `fit_supervised`."""
        raise ValueError("AutoMap needs targets to choose; call fit(X, y).")

    def check_parameters(self) -> None:
        if self.n_components != "auto":
            check_count("n_components", self.n_components)
        if not isinstance(self.kernel, ShiftInvariantKernel) and not (
            isinstance(self.kernel, str) and self.kernel == "auto"
        ):
            raise ValueError(
                "kernel must be 'auto' or a shift-invariant kernel of kitchenette.kernels, such as "
                f"Gaussian(); got {self.kernel!r}."
            )
        check_choice("scales", self.scales, ("auto", *SCALES, *LEARNED))
        if self.task is not None:
            check_choice("task", self.task, TASKS)
        if isinstance(self.effort, str):
            check_choice("effort", self.effort, tuple(EFFORTS))
        elif not (isinstance(self.effort, Real) and 0 < self.effort < np.inf):
            raise ValueError(
                f"effort must be {', '.join(map(repr, EFFORTS))}, or a positive number of seconds; "
                f"got {self.effort!r}."
            )

    # ------------------------------------------------------------ what was chosen

    @property
    def kernel_(self) -> Kernel:
        """The kernel of the prepared columns."""
        kernel: Kernel = clone(self.fitted().inner.kernel)
        return kernel

    @property
    def length_scale_(self) -> Array:
        """The length scale of each column, infinity where a column is ignored."""
        preparation = self.fitted().preparation
        steps = preparation.steps if isinstance(preparation, Sequence) else (preparation,)
        encoding = steps[0] if isinstance(steps[0], Columns) else None
        steps = steps if encoding is None else steps[1:]
        slopes = np.ones(steps[0].n_columns)
        for step in steps:
            if isinstance(step, ColumnAffine):
                slopes *= np.abs(step.factor)
            elif isinstance(step, PiecewiseLinear):
                slopes *= average_slopes(step)
            elif isinstance(step, LinearColumns):
                slopes *= np.linalg.norm(step.matrix, axis=1)
            elif isinstance(step, UnitRows):
                raise AttributeError("Features of unit rows have no length scale.")
        if encoding is not None:
            squares = np.bincount(encoding.owners(), slopes**2, minlength=encoding.n_columns)
            slopes = np.sqrt(squares)
        return np.divide(1, slopes, out=np.full(slopes.shape, np.inf), where=slopes > 0)

    # ------------------------------------------------------------ files

    fitted_types: ClassVar[dict[str, Any]] = {
        **RowMap.fitted_types,
        "choice_": Choice,
        "column_spreads_": Annotated[Array | None, Shape("specification_.inner.n_columns")],
        "feature_importances_": Annotated[Array | None, Shape("n_features_in_")],
    }


def to_compare(rows: Any) -> Any:
    """Rows on which candidates are compared, dense unless they have many columns.

    Numbers are rounded to float32 in columns where that is hardly seen, and are float64 then. So
    the choice does not depend on the precision of the data, nor on whether they are sparse.
    """
    if sp.issparse(rows) and rows.shape[1] > SEARCH.dense_columns:
        numbers = rounded_columns(rows.data[:, None])[:, 0]
        return sp.csr_matrix((numbers, rows.indices, rows.indptr), shape=rows.shape)
    return rounded_columns(rows.toarray() if sp.issparse(rows) else rows)


def rounded_columns(rows: NDArray[Any]) -> Array:
    """Rows in float64, rounded to float32 in columns whose spread is far above rounding errors."""
    rows = rows.astype(np.float64)
    if rows.shape[0] == 0:
        return rows
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = rows.astype(np.float32).astype(np.float64)
        error = np.abs(rounded - rows).max(axis=0)
        # Numbers beyond float32 have an infinite error, and their spread may overflow as well.
        close = np.isfinite(error) & (error <= SEARCH.rounding_error * rows.std(axis=0))
        return np.where(close, rounded, rows)


def own_order(rows: Any, y: NDArray[Any]) -> NDArray[np.intp]:
    """The places of distinct rows in an order that depends on nothing but these rows.

    It is that of the targets and of the first columns, which scaling does not change.
    """
    numbers = y if y.dtype.kind == "f" else np.unique(y, return_inverse=True)[1].reshape(y.shape)
    numbers = numbers.reshape(y.shape[0], -1).astype(np.float64)
    columns = [row_keys(rows, numbers), *numbers.T[::-1]]
    if isinstance(rows, np.ndarray):
        columns[1:1] = rows.T[: SEARCH.ordering_columns][::-1]
    return np.lexsort(columns)


def with_unit_length(kernel: ShiftInvariantKernel) -> ShiftInvariantKernel:
    """A kernel of this family with a length scale of one."""
    made: ShiftInvariantKernel = clone(kernel).set_params(length_scale=1.0)
    return made


def average_slopes(preparation: PiecewiseLinear) -> Array:
    """The slope of each column's function between the ends of the data; 0 if it is constant."""
    first, last = preparation.starts[:-1], preparation.starts[1:] - 1
    first, last = first + preparation.outside, last - preparation.outside
    rise = np.abs(preparation.at[last] - preparation.at[first])
    run = preparation.knots[last] - preparation.knots[first]
    return np.divide(rise, run, out=np.zeros(rise.shape), where=run > 0)


def choose(
    X: Any,
    y: Any = None,
    *,
    n_components: int | str = "auto",
    kernel: Any = "auto",
    scales: str = "auto",
    task: str | None = None,
    effort: str | float = "balanced",
    sample_weight: Any = None,
    random_state: Any = None,
) -> Choice:
    """Choose a kernel, the scales of the columns, a width and a number of features.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame of shape (n_rows, n_columns), or Source
        Rows, of which a sample is used. A source has its own targets and weights.
    y : array-like of shape (n_rows,) or (n_rows, n_targets)
        What is to be predicted.
    n_components, kernel, scales, task, effort, random_state
        As in `AutoMap`.
    sample_weight : array-like of shape (n_rows,), optional
        Nonnegative weights.

    Returns
    -------
    choice : Choice
        What was tried as ``table``, what was chosen and why as ``sentence``, a picture by
        ``plot()``, and the map itself as ``feature_map``.

    Examples
    --------
    >>> import numpy as np
    >>> import kitchenette
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 4))
    >>> y = np.sin(2 * X[:, 0]) + X[:, 1]
    >>> choice = kitchenette.choose(X, y, random_state=0)
    >>> model = kitchenette.KernelRegressor(choice.feature_map).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """
    seed = seed_from(random_state)
    auto = AutoMap(
        n_components, kernel=kernel, scales=scales, task=task, effort=effort, random_state=seed
    )
    if is_table(X) or (is_frame(X) and not has_numbers_only(X)):
        y = check_array(array_of_targets(y), ensure_2d=False, dtype=None, input_name="y")
        if sample_weight is not None:
            sample_weight = checked_weights(sample_weight, X.shape[0])
        X, y, sample_weight = source(X, target=y, weight=sample_weight), None, None
    rows = as_source(X, y, sample_weight)
    if not rows.is_table:
        auto.fit_supervised(X, y, sample_weight)
        return auto.choice_.with_map(FrozenEstimator(auto))
    sample, schema = rows.drawn(seed), rows.schema.some(rows.features)
    fitted = TableMap.fitted_on(auto, schema, sample, rules=rows.rules)
    assert isinstance(fitted.map_, AutoMap)
    return fitted.map_.choice_.with_map(FrozenEstimator(fitted))
