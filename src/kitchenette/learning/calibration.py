"""Probabilities of classes from scores, learned on rows that the scores have not been fitted to.

Two calibrations compete, and the one with the smaller log loss in two-fold cross-validation wins:

* "softmax": the probability of class c is proportional to exp(slope * score_c + bias_c), Platt's
  sigmoid for two classes. One common slope; the biases are held near zero by a penalty, because
  least squares with an intercept already knows how frequent the classes are. Without the penalty
  a model that is nearly always right has biases that follow its one or two mistakes.
* "isotonic": an increasing step function of the score for each class with enough rows, then
  divided by their sum. Classes with few rows keep their softmax probability.

The class with the largest score has the largest probability: where a calibration would order
the classes otherwise, their probabilities are averaged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression, minimize
from scipy.special import softmax

from kitchenette.files.fields import Interval, Shape
from kitchenette.files.registry import storable
from kitchenette.resources import one_blas_thread

Array = NDArray[np.float64]
PRIOR_SLOPE = 4.0  # the slope of a sigmoid that follows scores between 0 and 1
# The standard deviation of the normal prior of a bias, for scores with an intercept and without:
# with one, least squares knows how frequent the classes are (`python -m benchmarks.calibration`).
BIAS_SPREAD, BIAS_SPREAD_WITHOUT = 1 / 8, 1.0
LEAST_OF_CLASS = 20  # rows in and out of a class for the steps of its isotonic regression
SLOPE_STEPS, SLOPE_TOLERANCE = 50, 1e-6  # of Newton's method for the logarithm of a slope


@storable
@dataclass(frozen=True, eq=False)
class Calibration:
    """A function from scores to probabilities."""

    slope: Annotated[float, Interval(0, np.inf, "neither")]  # the slope of "softmax"
    biases: Annotated[Array, Shape(None)]  # the biases of "softmax"; shape (n_classes,)
    # for "isotonic", scores and probabilities of each class; no knots for a class that has none;
    # of shape (2, n_knots). The list is empty for "softmax"
    curves: list[Array]
    floor: Annotated[float, Interval(0, 1)]  # the smallest probability of "isotonic"

    @classmethod
    def unfitted(cls, n_classes: int) -> Self:
        """A guess for scores between 0 and 1."""
        return cls(PRIOR_SLOPE, np.zeros(n_classes), [], 0.0)

    @classmethod
    def fit(
        cls,
        scores: Array,
        labels: NDArray[np.intp],
        weights: Array,
        counts: Array | None = None,
        *,
        bias_spread: float = BIAS_SPREAD,
    ) -> Self:
        """The better one of the two calibrations.

        Scores are in an order that has nothing to do with the labels, which are class
        indices. The biases have a normal prior of this spread: `BIAS_SPREAD_WITHOUT` where
        the scores have no intercept, and so do not know how frequent the classes are.
        """
        counts = np.ones(labels.size) if counts is None else counts
        losses = np.zeros(2)
        halves = np.arange(labels.size) % 2 == 0
        if min(halves.sum(), (~halves).sum()) < 2 * LEAST_OF_CLASS:
            return cls._softmax(scores, labels, weights, counts, bias_spread)
        for half in (halves, ~halves):
            first_half = scores[half], labels[half], weights[half]
            plain = cls._softmax(*first_half, counts[half], bias_spread)
            for i, candidate in enumerate((plain, plain._isotonic(*first_half))):
                chosen = candidate(scores[~half])[np.arange((~half).sum()), labels[~half]]
                losses[i] -= weights[~half] @ np.log(np.maximum(chosen, 1e-300))
        plain = cls._softmax(scores, labels, weights, counts, bias_spread)
        return plain._isotonic(scores, labels, weights) if losses[1] < losses[0] else plain

    @classmethod
    def _softmax(
        cls,
        scores: Array,
        labels: NDArray[np.intp],
        weights: Array,
        counts: Array | None = None,
        bias_spread: float = BIAS_SPREAD,
    ) -> Self:
        n_rows, n_classes = scores.shape
        rows = np.arange(n_rows)
        shares = weights / weights.sum()
        # The terms of the gradient that come from the scores of the true classes are constant.
        of_classes = np.bincount(labels, shares, minlength=n_classes)
        of_scores = float(shares @ scores[rows, labels])
        # Normal priors: of variance one for the logarithm of the slope, and of the biases.
        strength = 1 / (n_rows if counts is None else float(counts.sum()))
        of_biases = bias_spread**-2 * strength

        def objective(parameters: Array) -> tuple[float, Array]:
            log_slope, biases = parameters[0], parameters[1:]
            slope = np.exp(log_slope)
            logits = slope * scores + biases
            logits -= logits.max(axis=1, keepdims=True)
            chosen = logits[rows, labels]
            expected = np.exp(logits, out=logits)
            totals = expected.sum(axis=1)
            expected *= (shares / totals)[:, None]  # probabilities times shares
            off = log_slope - np.log(PRIOR_SLOPE)
            loss = float(shares @ (np.log(totals) - chosen))
            loss += float(strength * off**2 + of_biases * (biases @ biases)) / 2
            by_slope = slope * (float(np.vdot(expected, scores)) - of_scores)
            gradient = np.concatenate([[by_slope], expected.sum(axis=0) - of_classes])
            return loss, gradient + np.concatenate([[strength * off], of_biases * biases])

        start = np.concatenate([[np.log(PRIOR_SLOPE)], np.zeros(n_classes)])
        limits = [(-12.0, 12.0), *[(None, None)] * n_classes]
        # On a busy machine, BLAS threads take many times as long as these small products.
        with one_blas_thread(n_classes):
            result = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=limits)
        return cls(float(np.exp(result.x[0])), result.x[1:].copy(), [], 0.0)

    def _isotonic(self, scores: Array, labels: NDArray[np.intp], weights: Array) -> Self:
        curves = []
        for number in range(scores.shape[1]):
            positive = labels == number
            if min(positive.sum(), (~positive).sum()) < LEAST_OF_CLASS:
                curves.append(np.empty((2, 0)))
                continue
            curves.append(_increasing(scores[:, number], positive, weights))
        return type(self)(self.slope, self.biases, curves, 1 / (2 * labels.size))

    def __call__(self, scores: Array) -> Array:
        """Probabilities, shape (n_rows, n_classes), whose rows add up to one."""
        probabilities: Array = softmax(self.slope * scores + self.biases, axis=1)
        if self.curves:
            for number, (at, heights) in enumerate(self.curves):
                if at.size:
                    probabilities[:, number] = np.interp(scores[:, number], at, heights)
            probabilities = np.maximum(probabilities, self.floor)
            probabilities /= probabilities.sum(axis=1, keepdims=True)
        return _with_largest(probabilities, scores.argmax(axis=1))

    def check(self) -> None:
        """Refuse curves of a model file that do not increase, or not between 0 and 1."""
        if self.curves and len(self.curves) != self.biases.size:
            raise ValueError("curves must be as many as biases.")
        for curve in self.curves:
            if curve.ndim != 2 or curve.shape[0] != 2:
                raise ValueError("curves must have two rows.")
            if not np.isfinite(curve).all() or np.any(np.diff(curve) < 0):
                raise ValueError("curves must be finite and must not decrease.")
            if curve.size and (curve[1, 0] < 0 or curve[1, -1] > 1):
                raise ValueError("curves must have probabilities.")


def calibrated_losses(scores: Array, labels: NDArray[np.intp], weights: Array) -> Array:
    """The log losses of rows by the softmax of their scores times the slope of the least loss.

    The slope has the prior of `Calibration`. It is one parameter of many rows, so that their loss
    is nearly as good as that of others.
    """
    shares, strength, off = weights / weights.sum(), 1 / labels.size, 0.0
    scores = scores - scores[np.arange(labels.size), labels][:, None]
    for _ in range(SLOPE_STEPS):
        slope = PRIOR_SLOPE * np.exp(off)
        logits = slope * scores
        largest = logits.max(axis=1, keepdims=True)
        expected = np.exp(logits - largest)
        totals = expected.sum(axis=1)
        losses: Array = np.log(totals) + largest[:, 0]
        expected *= scores
        means = expected.sum(axis=1) / totals
        variances = np.einsum("ij,ij->i", expected, scores) / totals - np.square(means)
        # The derivatives in the logarithm of the slope; the second one without a part that is
        # zero at the minimum and may be negative elsewhere.
        gradient = slope * float(shares @ means)
        curvature = slope**2 * float(shares @ variances) + max(gradient, 0.0) + strength
        step = float(np.clip(-(gradient + strength * off) / curvature, -1, 1))
        off += step
        if abs(step) < SLOPE_TOLERANCE:
            break
    return losses


def _increasing(scores: Array, positive: NDArray[np.bool_], weights: Array) -> Array:
    """Isotonic regression: increasing scores and their probabilities, shape (2, n_knots).

    Between the knots it is linear; those that lie on a constant piece are left out. It is that of
    `sklearn.isotonic.IsotonicRegression`, whose checks take longer than the regression.
    """
    weighted = weights > 0
    scores, positive, weights = scores[weighted], positive[weighted], weights[weighted]
    at, inverse = np.unique(scores, return_inverse=True)
    sums = np.bincount(inverse, weights, minlength=at.size)
    means = np.bincount(inverse, weights * positive, minlength=at.size) / sums
    if at.size == 0:
        return np.empty((2, 0))
    heights = np.clip(isotonic_regression(means, weights=sums).x, 0, 1)
    kept = np.ones(at.size, dtype=bool)
    steps = np.diff(heights) != 0
    kept[1:-1] = steps[1:] | steps[:-1]
    return np.stack([at[kept], heights[kept]])


def _with_largest(probabilities: Array, predicted: NDArray[np.intp]) -> Array:
    """Let the predicted class have the largest probability, with the same sum of each row.

    All probabilities above that of the predicted class are averaged with it.
    """
    wrong = np.flatnonzero(probabilities.argmax(axis=1) != predicted)
    if wrong.size == 0:
        return probabilities
    probabilities_of_wrong, winner = probabilities[wrong], predicted[wrong]
    own = probabilities_of_wrong[np.arange(wrong.size), winner]
    pooled = probabilities_of_wrong >= own[:, None]
    mean = (probabilities_of_wrong * pooled).sum(axis=1) / pooled.sum(axis=1)
    probabilities_of_wrong = np.where(pooled, mean[:, None], probabilities_of_wrong)
    # A little more than the others, so that the largest one is unique.
    probabilities_of_wrong[np.arange(wrong.size), winner] *= 1 + 1e-12
    probabilities[wrong] = probabilities_of_wrong / probabilities_of_wrong.sum(
        axis=1, keepdims=True
    )
    return probabilities
