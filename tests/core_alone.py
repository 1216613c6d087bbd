"""The native core in a new process, without the package, which takes seconds to import."""

from __future__ import annotations

from kitchenette import _core

CORE_ALONE = f"""
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("kitchenette._core", {_core.__file__!r})
_core = module_from_spec(spec)
spec.loader.exec_module(_core)
"""
