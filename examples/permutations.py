"""Learning from permutations: telling digits by an order of brightness alone.

Le, Sarlos and Smola (2013, Remark 8) note that permutations, written as permutation matrices, can
be fed to a dot-product kernel: the inner product of two such matrices counts the positions where
the permutations agree, and a polynomial of it looks at pairs and triples of positions.

Here an image of a handwritten digit is cut into nine regions, and all that is kept of it is
their order from dark to bright: one of 9! = 362880 permutations. A linear model on permutation
matrices weighs each region's rank by itself; a kernel of degree two sees which ranks come
together.

    python examples/permutations.py
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeClassifierCV
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import LabelBinarizer

from kitchenette import Fastfood
from kitchenette.kernels import Polynomial

REGIONS = [(0, 3), (3, 5), (5, 8)]
ALPHAS = np.logspace(-4, 2, 13)


def brightness_ranks(images: NDArray[np.float64]) -> NDArray[np.intp]:
    """The rank of each of nine regions among them, relative to its usual brightness."""
    regions = [images[:, a:b, c:d].mean(axis=(1, 2)) for a, b in REGIONS for c, d in REGIONS]
    brightness = np.stack(regions, axis=1)
    relative = (brightness - brightness.mean(axis=0)) / brightness.std(axis=0)
    return relative.argsort(axis=1, kind="stable").argsort(axis=1)


def permutation_matrices(ranks: NDArray[np.intp]) -> NDArray[np.float64]:
    """Flattened permutation matrices, scaled to unit length."""
    n, k = ranks.shape
    matrices = np.zeros((n, k, k))
    matrices[np.arange(n)[:, None], np.arange(k), ranks] = 1
    return matrices.reshape(n, k * k) / np.sqrt(k)


def accuracies() -> dict[str, float]:
    """Accuracy in five-fold cross-validation, for each model."""
    digits = load_digits()
    X, y = permutation_matrices(brightness_ranks(digits.images)), digits.target
    kernel = Polynomial(degree=2, coef0=0.3)
    features = Fastfood(kernel, 4096, projection="orthogonal", random_state=0)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    predicted = {
        "linear in the permutation matrix": cross_val_predict(
            RidgeClassifierCV(ALPHAS), X, y, cv=folds
        ),
        "Fastfood, degree 2": cross_val_predict(
            make_pipeline(features, RidgeClassifierCV(ALPHAS)), X, y, cv=folds
        ),
    }
    one_hot = LabelBinarizer().fit_transform(y)
    exact = KernelRidge(alpha=0.3, kernel="precomputed")
    scores = cross_val_predict(exact, kernel(X), one_hot, cv=folds.split(X, y))
    predicted["exact kernel, degree 2"] = scores.argmax(axis=1)
    return {name: float(np.mean(labels == y)) for name, labels in predicted.items()}


if __name__ == "__main__":
    for model, accuracy in accuracies().items():
        print(f"{model:34}{accuracy:.3f}")
