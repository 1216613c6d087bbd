"""Statistics of features, the solvers on them, target codings and output codes."""

from kitchenette.learning.least_squares import LeastSquares
from kitchenette.learning.output_codes import OutputCode
from kitchenette.learning.solution import Solution

__all__ = ["LeastSquares", "OutputCode", "Solution"]
