"""A tracker's tickets, mirrored."""

__all__ = ["Mirror"]

from .plugin import Mirror
