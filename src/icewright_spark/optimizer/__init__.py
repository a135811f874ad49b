"""The resident optimizer: claims, leases, attempts, reports."""
