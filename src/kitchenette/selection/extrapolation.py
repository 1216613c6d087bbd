"""The variance of predictions for rows beyond the data.

A model of D random features has D unknowns. Many more rows than that determine all of them, and
then the variance of its predictions stays small however far from the data ("variance starvation").
The Gaussian process that the features approximate returns to its prior there, so beyond the data
the variance is at least that of such a process.

The share of the prior variance that is left at a row x is the largest 1 / (|g|^2 + sum_i g(x_i)^2 /
alpha) of functions g of the space of the kernel k with g(x) = 1. The box of the data is convex, so
along the line from x through the nearest point p of the box, all rows are at least as far as p, at
a distance of r length scales. For the Gaussian kernel take g as a function h of the place on this
line, times the kernel across it: |g| is the norm of h, and g(x_i)^2 is at most the square of h. So
rows of any number of columns tell no more of x than as many rows on a line from r on. For the
Laplacian kernel, with distances of the 1-norm, k(x, y) = k(x, p) k(p, y) for every y of the box, so
that 1 - k(x, p)^2 is left or more, as on a line. Hence we solve the process of one dimension. Where
rows are on the line is not known; with as many as there are at every place, they tell more than in
any other way. Other radial kernels are treated alike, though rows beside the line tell a
little there: of up to three columns, exact processes have two thirds of this share or more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from kitchenette.kernels import Kernel
from kitchenette.learning.partial import written
from kitchenette.learning.solution import Solution
from kitchenette.maps.prepared import PreparedSpecification
from kitchenette.maps.protocol import FittedMap

Array = NDArray[np.float64]
LINE = 4.0  # length scales on which rows help to extrapolate
PLACES = 64  # on this line
JITTER = 1e-12  # of a kernel matrix, far above its rounding errors


def predictive_variance(posterior: Solution, fitted: FittedMap, X: Any) -> Array:
    """The variance of new observations, at least that of a Gaussian process beyond the data.

    Parameters
    ----------
    posterior : Solution
        The posterior distribution of the weights.
    fitted : FittedMap
        The map. The range of the data is known to those that `AutoMap` has chosen on dense rows.
    X : table of rows
        Rows.

    Returns
    -------
    variance : ndarray of shape (n_rows, n_targets)
    """
    rows = fitted.rows(X)
    specification = getattr(fitted, "specification_", None)
    if not isinstance(specification, PreparedSpecification):
        return posterior.variance(written(fitted, rows, fitted.operator(rows)))
    # Where predictions are those at the ends of the data, features are not.
    beyond = specification.beyond
    variance = posterior.variance(written(fitted, rows, beyond.operator(rows.dtype)))
    found = beyond.distances(rows)
    alpha, n_rows = posterior.alpha * posterior.weight_scale, posterior.n_observations
    if found is None or alpha <= np.finfo(np.float64).eps * n_rows:
        return variance  # without a penalty there is no prior
    kernel, distances = found
    outside = distances > 0
    if outside.any():
        left = unlearned_share(kernel, distances[outside], n_rows / alpha)
        noise = posterior.noise_variance
        # Narrow features have little variance on average over the rows, so noise / alpha may be
        # less than what the features explain; there, targets spread as they do among the data.
        prior = np.maximum(noise / alpha, posterior.target_variance - noise)
        least = noise + left[:, None] * prior
        variance[outside] = np.maximum(variance[outside], least)
    return variance


def unlearned_share(kernel: Kernel, distances: Array, information: float) -> Array:
    """The share of the prior variance that is left at these distances from all rows.

    Parameters
    ----------
    kernel : RadialKernel or Laplacian
        The kernel.
    distances : ndarray
        Distances.
    information : float
        The number of rows times the prior variance of the function over that of the noise.

    Returns
    -------
    share : ndarray
        Numbers from 0, where the distance is zero, to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from kitchenette.kernels import Gaussian
    >>> from kitchenette.selection.extrapolation import unlearned_share
    >>> unlearned_share(Gaussian(1.0), np.array([0.0, 1.0, 2.0, 4.0]), 1e6).round(2)
    array([0.  , 0.03, 0.59, 1.  ])
    """
    line = LINE * np.linspace(0, 1, PLACES)[:, None] ** 3  # closer to each other near x
    noise = 1 / information + JITTER
    factor = cholesky(kernel(line) + noise * np.eye(PLACES), lower=True)
    places = -np.append(0.0, distances)[:, None]
    learned = np.square(solve_triangular(factor, kernel(line, places), lower=True)).sum(axis=0)
    return np.clip(learned[0] - learned[1:], 0, 1)
