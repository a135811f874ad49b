"""The stitch kernel: row groups of many Parquet files copied byte for byte under one new footer, with a proof.

Runs in Spark's Python workers and knows nothing of Spark.
"""
