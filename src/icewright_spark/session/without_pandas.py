"""Python workers without pandas, of which the merge has no use.

Arrow imports it, where it is installed, when it first converts a value: 0.6 CPU seconds and 60 MB for each worker, more
than the merge of a small table costs. Whoever imports pandas later still can, and may then convert to it; only what
Arrow is given from it is not known for what it is.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

import numpy as np
import pyarrow as pa


def leave_pandas_out() -> None:
    """Have Arrow look for pandas in vain, once and for all in this process. Nothing happens where pandas is there."""
    if "pandas" in sys.modules:
        return
    hiding = _NoPandas()
    sys.meta_path.insert(0, hiding)
    try:
        pa.scalar(0)  # Arrow's C++ looks for itself
        pa.array(np.empty(0))
    finally:
        sys.meta_path.remove(hiding)


class _NoPandas:
    """A finder that says of pandas that it is not there."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        """None leaves a module to others."""
        del path, target
        if fullname == "pandas":
            raise ImportError(fullname)
        return None
