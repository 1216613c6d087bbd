"""Training in four stages: prepare, partial, combine, finish.

`fit`, `partial_fit` and `merge` of the estimators are arrangements of these stages, and so are
learning from files, resuming, and learning on several machines:

1. ``prepare(estimator, sample, targets)`` fits the feature map and the coding of the targets on a
   sample of the rows. The result has learned no rows; it is a specification that can be pickled
   and stored.
2. ``partial(prepared, X, y)`` is the `Partial` of some rows, anywhere, of any number of them.
3. ``combine(a, b)`` is the partial of the rows of both. It does not matter in which order
   partials are combined, up to rounding errors.
4. ``finish(prepared, partial)`` is the fitted estimator.

None of them changes its arguments, so that a stage may be repeated, for example by a scheduler
that runs a task twice; who combines each partial once counts each row once.

>>> import numpy as np
>>> from kitchenette import Fastfood, KernelRegressor
>>> from kitchenette.training import combine, finish, partial, prepare
>>> X = np.random.default_rng(0).normal(size=(1000, 3))
>>> y = np.sin(X[:, 0]) + X[:, 1]
>>> estimator = KernelRegressor(Fastfood(n_components=64, random_state=0))
>>> prepared = prepare(estimator, X[::4], y[::4])
>>> here, there = partial(prepared, X[:400], y[:400]), partial(prepared, X[400:], y[400:])
>>> model = finish(prepared, combine(here, there))
>>> model.statistics_.n_rows, model.score(X, y) > 0.9
(1000, True)
"""

from __future__ import annotations

from copy import copy
from typing import Any, TypeVar

from numpy.typing import ArrayLike
from sklearn.base import clone

from kitchenette.learning.partial import Partial

Estimator = TypeVar("Estimator", bound=Any)


def prepare(
    estimator: Estimator,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    classes: ArrayLike | None = None,
) -> Estimator:
    """Fit the feature map and the coding of the targets on a sample, and learn no rows.

    Parameters
    ----------
    estimator : KernelRegressor, KernelClassifier or KernelPCA
        An estimator that learns in one pass; it is not changed.
    X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
        A sample of the rows.
    y : array-like of shape (n_rows,) or (n_rows, n_targets), optional
        Their targets; `KernelPCA` needs none.
    sample_weight : array-like of shape (n_rows,), optional
        Their weights.
    classes : array-like of shape (n_classes,), optional
        Labels that are known beforehand, for a classifier, in addition to those of the sample.
        Labels that appear only later are added when they do.

    Returns
    -------
    prepared : estimator
        It can be pickled, stored by `kitchenette.save`, and passed to `partial` and `finish`. Its
        own `partial_fit` learns with the map of the sample.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import Fastfood, KernelClassifier
    >>> from kitchenette.training import finish, partial, prepare
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> labels = np.array(["near", "far"])[(np.square(X).sum(axis=1) > 1).astype(int)]
    >>> estimator = KernelClassifier(Fastfood(n_components=64, random_state=0))
    >>> prepared = prepare(estimator, X[:50], labels[:50])
    >>> finish(prepared, partial(prepared, X, labels)).classes_.tolist()
    ['far', 'near']
    """
    prepared = clone(estimator)
    prepared.prepare_on(X, y, sample_weight, classes)
    return prepared


def partial(prepared: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Partial:
    """The partial of some rows.

    Parameters
    ----------
    prepared : estimator
        The result of `prepare`, or a fitted estimator, whose rows are not counted.
    X, y, sample_weight
        Rows, targets and weights, as for `fit`. There may be no rows at all, and a classifier may
        meet labels that it does not know.

    Returns
    -------
    partial : Partial

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import Fastfood, KernelRegressor
    >>> from kitchenette.training import partial, prepare
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> estimator = KernelRegressor(Fastfood(n_components=64, random_state=0))
    >>> prepared = prepare(estimator, X[:50], X[:50, 0])
    >>> partial(prepared, X[:100], X[:100, 0]).n_rows
    100
    """
    found: Partial = prepared.partial(X, y, sample_weight)
    return found


def combine(a: Partial, b: Partial) -> Partial:
    """The partial of the rows of both; neither is changed.

    Parameters
    ----------
    a, b : Partial
        Partials of different rows by the same prepared estimator.

    Returns
    -------
    partial : Partial

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import KernelPCA
    >>> from kitchenette.training import combine, partial, prepare
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> prepared = prepare(KernelPCA(random_state=0), X[:50])
    >>> combine(partial(prepared, X[:100]), partial(prepared, X[100:])).n_rows
    300
    """
    return a.combined(b)


def finish(prepared: Estimator, partial: Partial, *, solve: bool = True) -> Estimator:
    """The estimator that has learned the rows of a partial.

    Parameters
    ----------
    prepared : estimator
        The result of `prepare`; it is not changed.
    partial : Partial
        The rows.
    solve : bool, default=True
        Whether to compute the weights at once, instead of when they are needed.

    Returns
    -------
    fitted : estimator

    See Also
    --------
    partial_of : The inverse.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import Fastfood, KernelRegressor
    >>> from kitchenette.training import finish, partial, prepare
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> estimator = KernelRegressor(Fastfood(n_components=64, random_state=0))
    >>> prepared = prepare(estimator, X[:50], X[:50, 0])
    >>> finish(prepared, partial(prepared, X, X[:, 0])).predict(X[:3]).shape
    (3,)
    """
    if partial.estimator != type(prepared).__name__ or partial.origin != prepared.origin():
        raise ValueError(
            "This partial was not made by this prepared estimator: their features differ."
        )
    if partial.n_rows == 0:
        raise ValueError("There is no row to learn from: the partial has none of positive weight.")
    finished = copy(prepared)
    finished.model_ = prepared.model_.with_partial(partial)
    return finished.solve() if solve else finished


def partial_of(fitted: Any) -> Partial:
    """The partial of all rows that an estimator has learned.

    Parameters
    ----------
    fitted : estimator
        An estimator with statistics, for example one that was loaded from a file.

    Returns
    -------
    partial : Partial
        To be combined with those that `partial` gives for this estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import Fastfood, KernelRegressor
    >>> from kitchenette.training import combine, finish, partial, partial_of
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = KernelRegressor(Fastfood(n_components=64, random_state=0)).fit(X[:100], X[:100, 0])
    >>> more = combine(partial_of(model), partial(model, X[100:], X[100:, 0]))
    >>> finish(model, more).statistics_.n_rows, model.statistics_.n_rows
    (300, 100)
    """
    return fitted.learned_partial()
