"""What the host lends the modules of this package while a tool runs."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

reference: Callable[[str], Any] | None = None
"""Returns the host's reference data of a key, None where it has none; None itself without a host."""
