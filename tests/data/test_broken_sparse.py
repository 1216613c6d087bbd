"""Sparse matrices whose indices are not valid are refused before anything reads by them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from kitchenette import (
    SRHT,
    AutoMap,
    Fastfood,
    KernelClassifier,
    KernelPCA,
    KernelRegressor,
    TensorSketch,
    choose,
)
from kitchenette.data import source
from kitchenette.kernels import Gaussian

N_COLUMNS = 12


def valid(kind=sp.csr_array):
    rng = np.random.default_rng(0)
    return kind(sp.random_array((60, N_COLUMNS), density=0.3, format="csr", rng=rng))


def broken_by(change, kind=sp.csr_array):
    X = valid(kind)
    change(X)
    return X


def too_large(X):
    X.indices[5] = 10**6


def negative(X):
    X.indices[5] = -7


def pointer_too_large(X):
    X.indptr[3] = 10**8


def pointer_decreasing(X):
    X.indptr[3], X.indptr[4] = X.indptr[5], X.indptr[2]


def pointer_negative(X):
    X.indptr[1] = -3


def pointer_too_short(X):
    X.indptr = X.indptr[:-4]


def data_too_short(X):
    X.data = X.data[:-3]


BREAKS = [
    too_large,
    negative,
    pointer_too_large,
    pointer_decreasing,
    pointer_negative,
    pointer_too_short,
    data_too_short,
]
Y = np.arange(60.0)
FASTFOOD = Fastfood(n_components=16, random_state=0)
USES = {
    "regressor": lambda X: KernelRegressor(FASTFOOD).fit(X, Y),
    "classifier": lambda X: KernelClassifier(FASTFOOD).fit(X, Y > 30),
    "iterative": lambda X: KernelRegressor(FASTFOOD, solver="iterative").fit(X, Y),
    "default": lambda X: KernelRegressor(AutoMap(16, random_state=0)).fit(X, Y),
    "pca": lambda X: KernelPCA(2, FASTFOOD).fit(X),
    "predict": lambda X: KernelRegressor(FASTFOOD).fit(valid(), Y).predict(X),
    "partial_fit": lambda X: KernelRegressor(FASTFOOD).partial_fit(valid(), Y).partial_fit(X, Y),
    "downdate": lambda X: KernelRegressor(FASTFOOD).fit(valid(), Y).downdate(X, Y),
    "fastfood": lambda X: FASTFOOD.fit(X),
    "transform": lambda X: Fastfood(n_components=16, random_state=0).fit(valid()).transform(X),
    "sketch": lambda X: TensorSketch(n_components=16, random_state=0).fit_transform(X),
    "srht": lambda X: SRHT(n_components=8, random_state=0).fit_transform(X),
    "kernel": lambda X: Gaussian(1.0)(X),
    "kernel of two": lambda X: Gaussian(1.0)(valid(), X),
    "source": lambda X: source(X, target=Y),
    "choose": lambda X: choose(X, Y, n_components=16),
}


@pytest.mark.parametrize("change", BREAKS, ids=lambda change: change.__name__)
@pytest.mark.parametrize("use", USES)
def test_invalid_indices_are_refused_everywhere(use, change):
    with pytest.raises(ValueError, match="sparse matrix is not valid"):
        USES[use](broken_by(change))


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_matrix, sp.csc_array, sp.bsr_array])
def test_other_formats_are_checked_before_they_are_converted(kind):
    with pytest.raises(ValueError, match="sparse matrix is not valid"):
        KernelRegressor(FASTFOOD).fit(broken_by(too_large, kind), Y)


def test_matrices_of_coordinates_and_lists_are_checked():
    coordinates = valid(sp.coo_array)
    coordinates.coords[1][4] = 10**6
    lists = valid(sp.lil_array)
    lists.rows[3], lists.data[3] = [10**6], [1.0]
    for X in (coordinates, lists):
        with pytest.raises(ValueError, match="sparse matrix is not valid"):
            KernelRegressor(FASTFOOD).fit(X, Y)


def test_files_are_checked(tmp_path):
    X = broken_by(too_large)
    path = str(tmp_path / "rows.npz")
    arrays = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape}
    np.savez(path, format=b"csr", **arrays)
    with pytest.raises(ValueError, match=r"rows\.npz.*sparse matrix is not valid"):
        source(path)


def test_unsorted_and_repeated_indices_mean_what_they_say():
    """Also if SciPy believes that the indices are sorted."""
    X = valid()
    assert X.has_canonical_format
    expected = X.toarray()
    for row in range(60):
        part = slice(*X.indptr[row : row + 2])
        X.indices[part], X.data[part] = X.indices[part][::-1].copy(), X.data[part][::-1].copy()
    np.testing.assert_array_equal(FASTFOOD.fit_transform(X), FASTFOOD.fit_transform(expected))
    sums = expected.copy()
    X = valid()
    assert X.has_canonical_format
    for row in range(60):
        columns = X.indices[slice(*X.indptr[row : row + 2])]
        if columns.size > 1:
            sums[row, columns[0]] += sums[row, columns[1]]
            sums[row, columns[1]] = 0
            columns[1] = columns[0]
    whole = KernelRegressor(FASTFOOD).fit(sums, Y)
    assert X.has_canonical_format  # though it is not
    np.testing.assert_allclose(KernelRegressor(FASTFOOD).fit(X, Y).predict(X), whole.predict(sums))


def test_the_matrix_that_was_passed_is_not_changed():
    X = valid(sp.csc_array)
    before = X.copy()
    KernelRegressor(FASTFOOD).fit(X, Y)
    assert (X.format, X.indices.tobytes()) == ("csc", before.indices.tobytes())
