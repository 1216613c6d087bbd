"""Scores and labels of classes from the outputs of a model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kitchenette.learning.codes import OutputCode

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scores:
    """Converts predicted indicators of the classes to scores."""

    code: NDArray[np.int8] | None
    decoding: str
    binary: bool
    plain: bool = False  # whether the outputs are the scores already

    def __call__(self, outputs: Array) -> NDArray[Any]:
        if self.code is None:
            if self.binary:
                return outputs[:, 1] - outputs[:, 0]
            if self.plain:
                return outputs
            # The scores of targets that are +1 for the class of a row and -1 for the others. The
            # sum of the outputs is one with an intercept, but not without.
            return 2 * outputs - outputs.sum(axis=1, keepdims=True)
        code, words = self._output_code
        scores = code.scores(outputs @ words, self.decoding)
        return scores[:, 1] - scores[:, 0] if self.binary else scores

    @cached_property
    def _output_code(self) -> tuple[OutputCode, Array]:
        assert self.code is not None
        code = OutputCode(self.code)
        return code, code.codewords.astype(np.float64)


@dataclass(frozen=True, eq=False)
class Labels:
    """Converts predicted indicators of the classes to labels."""

    classes: NDArray[Any]
    scores: Scores

    def __call__(self, outputs: Array) -> NDArray[Any]:
        if self.scores.code is None:
            return self.classes[outputs.argmax(axis=1)]
        scores = self.scores(outputs)
        if self.scores.binary:
            return self.classes[(scores > 0).astype(np.intp)]
        return self.classes[scores.argmax(axis=1)]
