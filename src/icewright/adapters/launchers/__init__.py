"""Where optimizers run: processes of this machine, and applications that are submitted to a cluster."""
