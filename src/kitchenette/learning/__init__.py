"""Statistics of features, the solvers on them, output codes, and the estimators."""

from kitchenette.learning.classifier import KernelClassifier
from kitchenette.learning.codes import OutputCode
from kitchenette.learning.kernel_pca import KernelPCA
from kitchenette.learning.least_squares import LeastSquares
from kitchenette.learning.predictor import Predictor
from kitchenette.learning.regressor import KernelRegressor
from kitchenette.learning.solution import Solution
from kitchenette.learning.stages import combine, finish, learn, prepare, summary_of
from kitchenette.learning.summary import Summary

__all__ = [
    "KernelClassifier",
    "KernelPCA",
    "KernelRegressor",
    "LeastSquares",
    "OutputCode",
    "Predictor",
    "Solution",
    "Summary",
    "combine",
    "finish",
    "learn",
    "prepare",
    "summary_of",
]
