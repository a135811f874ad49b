"""The merge kernel: many Parquet files in, one out, in order, with a proof.

Runs in Spark's Python workers and knows nothing of Spark. Nothing is imported here: the parts import one another, and
those of their neighbours ``statistics`` and ``stitch``, by whichever is asked for first.
"""
