"""Learning in four stages: prepare, learn, combine, finish.

`fit`, `partial_fit` and `merge` of the estimators are arrangements of these stages, and so are
learning from files, resuming, and learning on several machines:

1. ``prepare(estimator, sample, targets)`` fits the feature map and the coding of the targets on a
   sample of the rows. The result has learned no rows; it is a specification that can be pickled
   and stored.
2. ``learn(prepared, X, y)`` is the `Summary` of some rows, anywhere, of any number of them.
3. ``combine(a, b)`` is the summary of the rows of both. It does not matter in which order
   summaries are combined, up to rounding errors.
4. ``finish(prepared, summary)`` is the fitted estimator.

None of them changes its arguments, so that a stage may be repeated, for example by a scheduler
that runs a task twice; who combines each summary once counts each row once.

>>> import numpy as np
>>> from kitchenette import Fastfood, KernelRegressor
>>> from kitchenette.learning import combine, finish, learn, prepare
>>> X = np.random.default_rng(0).normal(size=(1000, 3))
>>> y = np.sin(X[:, 0]) + X[:, 1]
>>> estimator = KernelRegressor(Fastfood(n_components=64, random_state=0))
>>> prepared = prepare(estimator, X[::4], y[::4])
>>> here, there = learn(prepared, X[:400], y[:400]), learn(prepared, X[400:], y[400:])
>>> model = finish(prepared, combine(here, there))
>>> model.statistics_.n_rows, model.score(X, y) > 0.9
(1000, True)
"""

from __future__ import annotations

from copy import copy
from typing import Any, TypeVar

from numpy.typing import ArrayLike
from sklearn.base import clone

from kitchenette.learning.base import FeatureLearner
from kitchenette.learning.summary import Summary

Estimator = TypeVar("Estimator", bound=FeatureLearner)


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
        It can be pickled, stored by `kitchenette.save`, and passed to `learn` and `finish`. Its
        own `partial_fit` learns with the map of the sample.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import Fastfood, KernelClassifier
    >>> from kitchenette.learning import finish, learn, prepare
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> labels = np.array(["near", "far"])[(np.square(X).sum(axis=1) > 1).astype(int)]
    >>> estimator = KernelClassifier(Fastfood(n_components=64, random_state=0))
    >>> prepared = prepare(estimator, X[:50], labels[:50])
    >>> finish(prepared, learn(prepared, X, labels)).classes_.tolist()
    ['far', 'near']
    """
    prepared = clone(estimator)
    prepared.prepare_on(X, y, sample_weight, classes)
    return prepared


def learn(prepared: FeatureLearner, X: Any, y: Any = None, sample_weight: Any = None) -> Summary:
    """The summary of some rows.

    Parameters
    ----------
    prepared : estimator
        The result of `prepare`, or a fitted estimator, whose rows are not counted.
    X, y, sample_weight
        Rows, targets and weights, as for `fit`. There may be no rows at all, and a classifier may
        meet labels that it does not know.

    Returns
    -------
    summary : Summary

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import Fastfood, KernelRegressor
    >>> from kitchenette.learning import learn, prepare
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> estimator = KernelRegressor(Fastfood(n_components=64, random_state=0))
    >>> prepared = prepare(estimator, X[:50], X[:50, 0])
    >>> learn(prepared, X[:100], X[:100, 0]).n_rows
    100
    """
    return prepared.summarised(X, y, sample_weight)


def combine(a: Summary, b: Summary) -> Summary:
    """The summary of the rows of both; neither is changed.

    Parameters
    ----------
    a, b : Summary
        Summaries of different rows by the same prepared estimator.

    Returns
    -------
    summary : Summary

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import KernelPCA
    >>> from kitchenette.learning import combine, learn, prepare
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> prepared = prepare(KernelPCA(random_state=0), X[:50])
    >>> combine(learn(prepared, X[:100]), learn(prepared, X[100:])).n_rows
    300
    """
    return a.combined(b)


def finish(prepared: Estimator, summary: Summary, *, solve: bool = True) -> Estimator:
    """The estimator that has learned the rows of a summary.

    Parameters
    ----------
    prepared : estimator
        The result of `prepare`; it is not changed.
    summary : Summary
        The rows, of which the estimator gets a copy.
    solve : bool, default=True
        Whether to compute the weights at once, instead of when they are needed.

    Returns
    -------
    fitted : estimator

    See Also
    --------
    summary_of : The inverse.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import Fastfood, KernelRegressor
    >>> from kitchenette.learning import finish, learn, prepare
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> estimator = KernelRegressor(Fastfood(n_components=64, random_state=0))
    >>> prepared = prepare(estimator, X[:50], X[:50, 0])
    >>> finish(prepared, learn(prepared, X, X[:, 0])).predict(X[:3]).shape
    (3,)
    """
    if summary.estimator != type(prepared).__name__ or summary.origin != prepared.origin():
        raise ValueError(
            "This summary was not learned by this prepared estimator: their features differ."
        )
    if summary.n_rows == 0:
        raise ValueError("There is no row to learn from: the summary has none of positive weight.")
    finished = copy(prepared)
    finished.adopt(summary.copied())
    if solve:
        finished.solve()
    return finished


def summary_of(fitted: FeatureLearner) -> Summary:
    """The summary of all rows that an estimator has learned.

    Parameters
    ----------
    fitted : estimator
        An estimator with statistics, for example one that was loaded from a file.

    Returns
    -------
    summary : Summary
        To be combined with those that `learn` gives for this estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette import Fastfood, KernelRegressor
    >>> from kitchenette.learning import combine, finish, learn, summary_of
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = KernelRegressor(Fastfood(n_components=64, random_state=0)).fit(X[:100], X[:100, 0])
    >>> more = combine(summary_of(model), learn(model, X[100:], X[100:, 0]))
    >>> finish(model, more).statistics_.n_rows, model.statistics_.n_rows
    (300, 100)
    """
    return fitted.summary(fitted.origin()).copied()
