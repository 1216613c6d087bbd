"""The estimators: parameters and docstrings around one immutable model."""

from kitchenette.estimators.kernel_classifier import KernelClassifier
from kitchenette.estimators.kernel_pca import KernelPCA
from kitchenette.estimators.kernel_regressor import KernelRegressor
from kitchenette.estimators.predictor import Predictor

__all__ = ["KernelClassifier", "KernelPCA", "KernelRegressor", "Predictor"]
