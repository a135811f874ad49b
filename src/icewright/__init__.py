"""icewright watches Apache Iceberg tables, optimizes them on Spark and proves that no row changed.

``from icewright import connect`` is the Python client; what it needs is imported when it is asked for. Types are in the
stub beside this file.
"""

from importlib import import_module

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """``connect``, and nothing else."""
    if name == "connect":
        return import_module("icewright.client").connect
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
