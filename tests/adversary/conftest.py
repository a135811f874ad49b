"""Lakes on Spark, and processes over a lake, as the tests of their own folders have them."""

from __future__ import annotations

from tests.e2e.conftest import processes
from tests.spark.conftest import lake, rows

__all__ = ["lake", "processes", "rows"]
