"""Feature maps: explicit random features whose inner products approximate a kernel."""

from kitchenette.maps import steps as _steps  # noqa: F401  (registers them for model files)
from kitchenette.maps.craft import CRAFTMap
from kitchenette.maps.fastfood import Fastfood
from kitchenette.maps.kitchen_sinks import RandomKitchenSinks
from kitchenette.maps.random_maclaurin import RandomMaclaurin
from kitchenette.maps.srht import SRHT
from kitchenette.maps.tefm import TEFM
from kitchenette.maps.tensor_sketch import TensorSketch

__all__ = [
    "SRHT",
    "TEFM",
    "CRAFTMap",
    "Fastfood",
    "RandomKitchenSinks",
    "RandomMaclaurin",
    "TensorSketch",
]
