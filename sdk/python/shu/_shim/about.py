"""What the host says of the plugin when it starts this process."""

from __future__ import annotations

from mortise._wire import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class About:
    """The second argument of _boot.py, a JSON object.

    name, version   of the plugin
    version_text    the version as its author wrote it, where that is another text
    entry           the file of its module, a slash path in the package
    module          the module's name, such as plugins.gmail.plugin
    class           the class in it
    capabilities    the services it declares
    operations      the names of those that the manifest has
    """

    def __init__(self, text: str) -> None:
        about: dict[str, Any] = loads(text.encode())
        self.name = str(about.get("name") or "plugin")
        self.version = str(about.get("version") or "0.0.0")
        self.version_text = str(about.get("version_text") or self.version)
        self.entry = str(about.get("entry") or "plugin.py")
        self.module = str(about.get("module") or "")
        self.class_name = str(about.get("class") or "Plugin")
        self.capabilities = frozenset(str(name) for name in about.get("capabilities") or [])
        self.operations = [str(name) for name in about.get("operations") or []]
