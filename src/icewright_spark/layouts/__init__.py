"""Layouts: which file a row belongs to, and where in it. Arrow in, Arrow out; knows nothing of Spark.

A sample is taken of the rows; :func:`cells_of` makes :class:`Cells` from it, which are small and travel to the workers;
:meth:`Cells.place` says for each row which file it goes to, and its place on the curve.
"""

from icewright_spark.layouts.cells import PLACES, Cells, cells_of, sample_rows

__all__ = ["PLACES", "Cells", "cells_of", "sample_rows"]
