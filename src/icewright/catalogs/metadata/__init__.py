"""Readers of metadata files, manifest lists and manifests."""
