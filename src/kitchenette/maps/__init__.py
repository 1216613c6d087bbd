"""Feature maps: a kernel and random building blocks make explicit features."""

from kitchenette.maps.fastfood import Fastfood
from kitchenette.maps.kitchen_sinks import RandomKitchenSinks

__all__ = ["Fastfood", "RandomKitchenSinks"]
