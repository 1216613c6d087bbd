"""Kitchenette: compact random features for kernel machines.

A random feature map turns a kernel machine into a linear one: it maps rows to explicit
features whose inner products approximate a kernel.

>>> from sklearn.datasets import load_digits
>>> from sklearn.linear_model import RidgeClassifier
>>> from sklearn.pipeline import make_pipeline
>>> from kitchenette import Fastfood
>>> X, y = load_digits(return_X_y=True)
>>> model = make_pipeline(Fastfood(n_components=1024, random_state=0), RidgeClassifier())
>>> model.fit(X[:1200], y[:1200]).score(X[1200:], y[1200:]) > 0.9
True
"""

from importlib.metadata import version

from kitchenette import bounds, data, kernels, metrics
from kitchenette._config import choose_instruction_set, show_config
from kitchenette.backends import register_engines
from kitchenette.estimators import KernelClassifier, KernelPCA, KernelRegressor
from kitchenette.files import ModelFileError, load, save
from kitchenette.learning import LeastSquares
from kitchenette.maps import (
    SRHT,
    TEFM,
    CRAFTMap,
    Fastfood,
    RandomKitchenSinks,
    RandomMaclaurin,
    TensorSketch,
)
from kitchenette.selection import AutoMap, choose
from kitchenette.sketching import fwht

choose_instruction_set()
register_engines()

__version__ = version("kitchenette")

__all__ = [
    "SRHT",
    "TEFM",
    "AutoMap",
    "CRAFTMap",
    "Fastfood",
    "KernelClassifier",
    "KernelPCA",
    "KernelRegressor",
    "LeastSquares",
    "ModelFileError",
    "RandomKitchenSinks",
    "RandomMaclaurin",
    "TensorSketch",
    "__version__",
    "bounds",
    "choose",
    "data",
    "fwht",
    "kernels",
    "load",
    "metrics",
    "save",
    "show_config",
]
