"""Start optimizers and Spark applications."""
