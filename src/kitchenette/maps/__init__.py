"""Feature maps: a kernel and random building blocks make explicit features."""

from kitchenette.maps.fastfood import Fastfood
from kitchenette.maps.kitchen_sinks import RandomKitchenSinks
from kitchenette.maps.random_maclaurin import RandomMaclaurin

__all__ = ["Fastfood", "RandomKitchenSinks", "RandomMaclaurin"]
