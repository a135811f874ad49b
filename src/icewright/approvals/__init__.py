"""Approval of plans by people."""
