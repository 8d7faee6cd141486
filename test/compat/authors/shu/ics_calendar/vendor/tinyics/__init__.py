"""tinyics 0.2 - a bundled pure-Python iCalendar reader (no timezone database)."""
from .reader import IcsError, read

__all__ = ["IcsError", "read"]
__version__ = "0.2"
