"""A first guess of the penalty, from a few rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from kitchenette.learning.threads import one_blas_thread

Array = NDArray[np.float64]
CONSTANT = 4 * float(np.finfo(np.float32).eps)  # the relative spread of constant features
TREND_PARTS = 4  # parts of the rows, which show how the penalty depends on their number
LEAST_PART = 20  # rows of such a part
TREND_LIMITS = -1.5, 0.0  # of the power of the number of rows to which penalties are proportional
FACTOR_LIMITS = np.log(1e-4), 0.0  # of the logarithm of the extrapolated factor


@dataclass(frozen=True)
class Pilot:
    """Kernel ridge regression on a few rows, to choose a penalty.

    Attributes
    ----------
    gram : ndarray of shape (n_rows, n_rows)
        Inner products of features after some vector was subtracted from them.
    columns : ndarray of shape (n_rows, n_targets)
        Target columns.
    weights : ndarray of shape (n_rows,)
        The weights of the rows, all positive.
    counts : ndarray of shape (n_rows,)
        The number of observations that each row stands for.
    size : float
        The squared norm of the vector that was subtracted.
    fit_intercept : bool
        Whether features and targets are centered.
    """

    gram: Array
    columns: Array
    weights: Array
    counts: Array
    size: float
    fit_intercept: bool

    def part(self, rows: slice) -> Pilot:
        """Some of the rows."""
        some = {name: getattr(self, name)[rows] for name in ("columns", "weights", "counts")}
        return replace(self, gram=self.gram[rows, rows], **some)

    def penalty(self) -> tuple[float, Array]:
        """The penalty of the least leave-one-out error.

        Returns
        -------
        alpha : float
            The penalty.
        errors : ndarray of shape (n_rows, n_targets)
            The errors of models without one observation of the row.
        """
        shares, weight_roots = self.weights / self.weights.sum(), np.sqrt(self.weights)[:, None]
        size = float(self.weights @ (self.gram.diagonal() + self.size))
        gram, Y = self.gram.copy(), self.columns
        if self.fit_intercept:
            Y = Y - shares @ Y
            gram -= shares @ gram
            gram -= (gram @ shares)[:, None]
        gram *= weight_roots
        gram *= weight_roots.T
        with one_blas_thread(gram.shape[0]):
            values, vectors = eigh(gram, overwrite_a=True)
        values = np.maximum(values, 0)
        trace = float(values.sum())
        if not trace > CONSTANT**2 * size:
            return max(1.0, size), Y  # the features are constant up to rounding
        scaled = weight_roots * Y
        rotated, squares = vectors.T @ scaled, np.square(vectors)
        spreads = np.square(scaled).mean(axis=0)
        spreads = np.where(spreads > 0, spreads, 1.0)
        best, least, found = 1.0, np.inf, scaled
        for alpha in trace * 10 ** np.arange(-8.0, 2.0, 0.5):
            shrunk = values / (values + alpha)
            leverages = squares @ shrunk + self.fit_intercept * shares
            left_out = np.maximum(1 - leverages / self.counts, 1e-10)[:, None]
            residuals = (scaled - vectors @ (shrunk[:, None] * rotated)) / left_out
            error = float((np.square(residuals) / spreads).sum())
            if error < least:
                best, least, found = float(alpha), error, residuals
        return best, found / weight_roots

    def trend(self, alpha: float, n_rows: int) -> float:
        """A factor by which the best penalty of all rows differs from ``alpha``, that of these.

        It is extrapolated from the penalties of parts of these rows, as a power of the number of
        rows.
        """
        n_few = len(self.gram)
        step = n_few // TREND_PARTS
        if step < LEAST_PART or n_rows <= n_few:
            return 1.0
        parts = [self.part(slice(i * step, (i + 1) * step)) for i in range(TREND_PARTS)]
        fewer = np.log([part.penalty()[0] for part in parts]).mean()
        slope = (np.log(alpha) - fewer) / np.log(TREND_PARTS)
        exponent = float(np.clip(slope, *TREND_LIMITS)) * np.log(n_rows / n_few)
        return float(np.exp(np.clip(exponent, *FACTOR_LIMITS)))
