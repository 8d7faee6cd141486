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

from . import _start  # noqa: F401  first: it says where bytecode goes
from ._context import Context
from ._errors import Cancelled, InvalidInput, MortiseError, PluginError, ServiceError
from ._plugin import Plugin
from ._result import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._codes import CODES
    from ._contracts import AgentInput, Intent, Proposal, SubmitRequest
    from ._field import Field
    from ._question import Reconciled

__all__ = [
    "CODES",
    "AgentInput",
    "Cancelled",
    "Context",
    "Field",
    "Intent",
    "InvalidInput",
    "MortiseError",
    "Plugin",
    "PluginError",
    "Proposal",
    "Reconciled",
    "Result",
    "ServiceError",
    "SubmitRequest",
]


def __getattr__(name: str) -> object:
    """Load what few plugins need only when they ask: a start-up pays for each module."""
    if name == "CODES":
        from ._codes import CODES

        return CODES
    if name == "Field":
        from ._field import Field

        return Field
    if name == "Reconciled":
        from ._question import Reconciled

        return Reconciled
    if name in ("AgentInput", "Intent", "Proposal", "SubmitRequest"):
        from . import _contracts

        return getattr(_contracts, name)
    raise AttributeError(f"module 'mortise' has no attribute {name!r}")
