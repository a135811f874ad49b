"""``make demo``: the whole loop on real data, beside a writer that knows nothing of it."""
