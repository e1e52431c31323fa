"""Code mode for agents that must show their work."""

__all__ = ["__version__"]

__version__ = "0.1.0"
