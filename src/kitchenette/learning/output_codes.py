"""Error-correcting output codes: classes as codewords of bits (Dietterich and Bakiri 1994).

Least squares is linear in the targets: if W are the weights for one-hot targets and C has
a codeword in each row, the weights for the bits of the code are W C, and likewise the
intercepts. A code needs no separate statistics and no separate solution.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import hadamard

from kitchenette.files.budget import Budget
from kitchenette.files.fields import checked_state
from kitchenette.files.registry import storable
from kitchenette.parameters import check_choice, check_count
from kitchenette.sketching.random import Stream

DRAWS = 64  # the number of random codes of which the best is taken, for up to 500 classes
COUNTED_CLASSES = 62  # with more classes, random columns are practically never equal
DECODINGS = ("soft", "hamming")


@storable
class OutputCode:
    """Codewords of +1 and -1 for classes, and their decoding.

    Parameters
    ----------
    codewords : array-like of shape (n_classes, code_length)
        Distinct rows of +1 and -1, or of 1 and 0.

    Attributes
    ----------
    codewords : ndarray of shape (n_classes, code_length)
        +1 and -1, int8.

    Notes
    -----
    As all codewords have the same norm, the one with the largest inner product with the
    outputs is also the nearest one. Applied to a one-hot solution with predictions p, the outputs
    are p C, and the scores of soft decoding are p C C' / code_length: nearly orthogonal codewords
    change the decision little. Hamming decoding uses only the signs of the outputs.

    Examples
    --------
    >>> from kitchenette.learning import OutputCode
    >>> code = OutputCode.random(10, 200, seed=0)
    >>> code.codewords.shape, code.distance > 80
    ((10, 200), True)
    >>> code.decode(code.codewords[[3, 1, 4]])
    array([3, 1, 4])
    """

    def __init__(self, codewords: ArrayLike):
        self.codewords = _checked(codewords)
        if len(np.unique(self.codewords, axis=0)) < len(self.codewords):
            raise ValueError("Two classes have the same codeword; all rows must be distinct.")

    @cached_property
    def distance(self) -> int:
        """The smallest number of bits in which two codewords differ."""
        return _distance(self.codewords)

    @property
    def n_classes(self) -> int:
        """The number of codewords."""
        return int(self.codewords.shape[0])

    @property
    def code_length(self) -> int:
        """The number of bits of a codeword."""
        return int(self.codewords.shape[1])

    @classmethod
    def random(cls, n_classes: int, code_length: int | None = None, *, seed: int) -> Self:
        """A dense random code: of several draws, the one with the largest minimum distance.

        No column is constant, and none equals another one or its complement, unless the length
        exceeds the number of such columns, 2^(n_classes - 1) - 1.

        Parameters
        ----------
        n_classes : int
            The number of words, at least 2.
        code_length : int, optional
            The number of bits, at least log2(n_classes). By default 200 as in Hamid et al.
            (2014), or twenty times that minimum if that is more.
        seed : int
            Equal seeds give equal codes.

        Returns
        -------
        code : OutputCode
        """
        n_classes = check_count("n_classes", n_classes, 2)
        least = int(np.ceil(np.log2(n_classes)))
        if code_length is None:
            code_length = max(200, 20 * least)
        code_length = check_count("code_length", code_length)
        if code_length < least:
            raise ValueError(
                f"{n_classes} classes need at least {least} bits for distinct codewords; "
                f"got code_length={code_length}."
            )
        # With few bits, independent columns rarely give distinct codewords.
        draw = _distinct_words if code_length < 2 * least else _distinct_columns
        number_of_draws = int(np.clip(64 * (500 / n_classes) ** 2, 4, DRAWS))
        draws = [draw(n_classes, code_length, seed, number) for number in range(number_of_draws)]
        return cls(max(draws, key=lambda code: (_distance(code), -_useless_columns(code))))

    @classmethod
    def hadamard(cls, n_classes: int) -> Self:
        """Rows of the smallest Hadamard matrix that is large enough, without its first column.

        The matrix has order p, a power of two; any two codewords differ in exactly p / 2 of the
        p - 1 bits, and no code of this length has a larger minimum distance for p classes.

        Parameters
        ----------
        n_classes : int
            The number of words, at least 2.

        Returns
        -------
        code : OutputCode
        """
        n_classes = check_count("n_classes", n_classes, 2)
        order = 1 << int(n_classes - 1).bit_length()
        return cls(hadamard(order, dtype=np.int8)[:n_classes, 1:])

    def to_file(self) -> dict[str, Any]:
        """The array ``codewords``, for a model file."""
        return {"codewords": self.codewords}

    @classmethod
    def from_file(cls, state: dict[str, Any], budget: Budget) -> Self:
        """A code from untrusted codewords, which are checked as in the constructor."""
        return cls(checked_state(state, {"codewords": np.ndarray})["codewords"])

    def scores(self, outputs: ArrayLike, decoding: str = "soft") -> NDArray[np.float64]:
        """How well outputs agree with each codeword.

        Parameters
        ----------
        outputs : array-like of shape (n_rows, code_length)
            Predictions of the bits.
        decoding : {"soft", "hamming"}, default="soft"
            "soft" gives inner products with the codewords, divided by the number of bits.
            "hamming" does the same with the signs of the outputs: 1 minus twice the fraction
            of bits that differ, where an output of zero counts half. Ties are broken by the
            soft scores, with a term of less than half a bit.

        Returns
        -------
        scores : ndarray of shape (n_rows, n_classes)
        """
        check_choice("decoding", decoding, DECODINGS)
        given = np.asarray(outputs, dtype=np.float64)
        if given.ndim != 2 or given.shape[1] != self.code_length:
            raise ValueError(
                f"outputs must have {self.code_length} columns, one for each bit; got an array "
                f"of shape {given.shape}."
            )
        words = self.codewords.T.astype(np.float64) / self.code_length
        soft = given @ words
        if decoding == "soft":
            return soft
        largest = np.abs(soft).max(axis=1, keepdims=True)
        among_equals = np.divide(soft, largest, where=largest > 0, out=np.zeros_like(soft))
        return np.sign(given) @ words + 0.4 / self.code_length * among_equals

    def decode(self, outputs: ArrayLike, decoding: str = "soft") -> NDArray[np.intp]:
        """The class of each row of outputs.

        Parameters
        ----------
        outputs : array-like of shape (n_rows, code_length)
            Predictions of the bits.
        decoding : {"soft", "hamming"}, default="soft"
            As in `scores`; of equal scores, the first class wins.

        Returns
        -------
        classes : ndarray of shape (n_rows,)
            Row indices of ``codewords``.
        """
        return np.argmax(self.scores(outputs, decoding), axis=1)


def _checked(codewords: Any) -> NDArray[np.int8]:
    given = np.asarray(codewords)
    if given.ndim != 2 or given.shape[0] < 2 or given.shape[1] < 1:
        raise ValueError(
            "A code is a matrix with a row for each class, at least two, and a column for each "
            f"bit; got an array of shape {given.shape}."
        )
    values = set(np.unique(given).tolist()) if given.dtype.kind in "biuf" else {None}
    if values <= {-1, 1}:
        return given.astype(np.int8)
    if values <= {0, 1}:
        return (2 * given.astype(np.int8) - 1).astype(np.int8)
    raise ValueError("A code must have entries +1 and -1, or 1 and 0, and no others.")


def _distance(code: NDArray[np.int8]) -> int:
    wide = code.astype(np.float32)  # exact up to 2^24 bits
    closest = -code.shape[1]
    for start in range(0, len(code), 1024):
        agreement = wide[start : start + 1024] @ wide.T
        np.fill_diagonal(agreement[:, start:], -code.shape[1])
        closest = max(closest, int(agreement.max()))
    return (code.shape[1] - closest) // 2


def _column_kinds(code: NDArray[np.int8]) -> NDArray[np.int64]:
    """An integer for each column, equal for complementary columns and 0 for constant ones."""
    differs = code[1:] != code[0]
    return (1 << np.arange(code.shape[0] - 1, dtype=np.int64)) @ differs


def _useless_columns(code: NDArray[np.int8]) -> int:
    if code.shape[0] > COUNTED_CLASSES:
        return 0
    kinds = np.unique(_column_kinds(code))
    return int(code.shape[1] - kinds.size + (kinds[0] == 0))


def _distinct_columns(n_classes: int, code_length: int, seed: int, number: int) -> NDArray[np.int8]:
    """Random columns, not constant, and repeated only if there are no more distinct ones."""
    stream = Stream(seed, "code columns")
    if n_classes > COUNTED_CLASSES:
        return stream.signs(1, n_classes * code_length, first=number).reshape(n_classes, -1)
    pool = stream.signs(1, n_classes * (4 * code_length + 64), first=number)
    columns = pool.reshape(n_classes, -1)
    kinds = _column_kinds(columns)
    varied = np.flatnonzero(kinds)
    first = np.sort(np.unique(kinds[varied], return_index=True)[1])
    repeated = np.setdiff1d(np.arange(varied.size), first)
    order = np.concatenate([first, repeated])
    return columns[:, varied[np.resize(order, code_length)]]


def _distinct_words(n_classes: int, code_length: int, seed: int, number: int) -> NDArray[np.int8]:
    """Random distinct codewords."""
    if code_length <= 16:
        words = Stream(seed, "code words").permutations(1, 1 << code_length, first=number)[0]
    else:
        pool = Stream(seed, "code words").words(1, 2 * n_classes, first=number)[0]
        unique, first = np.unique(pool >> np.uint64(64 - code_length), return_index=True)
        words = unique[np.argsort(first)].astype(np.int64)
    bits = words[:n_classes, None] >> np.arange(code_length) & 1
    return (2 * bits - 1).astype(np.int8)
