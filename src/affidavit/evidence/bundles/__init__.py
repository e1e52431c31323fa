"""Bundles: records with what they rest on, in one file that anyone can check."""
