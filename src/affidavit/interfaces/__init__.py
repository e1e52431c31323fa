"""Thin doors that translate and decide nothing."""
