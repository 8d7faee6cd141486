"""Write Mortise plugins in Python: one typed function, one call to run.

    from mortise import Plugin

    plugin = Plugin("text.word_count", version="1.0.0")

    @plugin.tool
    def word_count(text: str) -> int:
        \"\"\"Count the words in a text.\"\"\"
        return len(text.split())

    plugin.run()

The annotations are the schema, the docstring is the description. Everything
public is importable from here; `mortise.testing` runs operations in process.
"""

from __future__ import annotations

from ._context import Context
from ._errors import Cancelled, InvalidInput, MortiseError, PluginError, ServiceError
from ._plugin import Plugin
from ._result import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._codes import CODES
    from ._field import Field

__all__ = [
    "CODES",
    "Cancelled",
    "Context",
    "Field",
    "InvalidInput",
    "MortiseError",
    "Plugin",
    "PluginError",
    "Result",
    "ServiceError",
]


def __getattr__(name: str) -> object:
    """Load what few plugins need only when they ask: a start-up pays for each module."""
    if name == "CODES":
        from ._codes import CODES

        return CODES
    if name == "Field":
        from ._field import Field

        return Field
    raise AttributeError(f"module 'mortise' has no attribute {name!r}")
