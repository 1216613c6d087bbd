"""Importances of columns by derivatives, beside scikit-learn's permutation importance.

python examples/importance.py            # prints both
python examples/importance.py FILE.png   # draws both
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_friedman1
from sklearn.inspection import permutation_importance
from sklearn.model_selection import train_test_split

from kitchenette import KernelRegressor

Array = NDArray[np.float64]


def importances() -> tuple[Array, Array]:
    """Importances of ten columns, of which five matter, each with a sum of one."""
    X, y = make_friedman1(2000, noise=0.5, random_state=0)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    model = KernelRegressor(random_state=0).fit(X, y)
    permuted = permutation_importance(model, X_test, y_test, n_repeats=5, random_state=0)
    means = np.maximum(permuted.importances_mean, 0)
    return model.importance(X_test), means / means.sum()


def draw(path: str) -> None:
    """Two pictures with a bar for each column."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(8, 3), sharey=True, layout="constrained")
    titles = "derivative x spread", "score lost by permutation"
    for ax, title, sizes in zip(axes, titles, importances(), strict=True):
        ax.barh([f"column {j}" for j in range(sizes.size)], sizes)
        ax.set(title=title, xlabel="share")
    axes[0].invert_yaxis()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        draw(sys.argv[1])
    else:
        for name, sizes in zip(("derivatives", "permutations"), importances(), strict=True):
            print(f"{name:>12}", np.round(sizes, 3))
