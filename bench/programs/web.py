"""A Python plugin whose one operation answers its input. Its schema is in the manifest."""

from mortise import Plugin

plugin = Plugin("web_python", version="1.0.0")


@plugin.tool
def echo(**properties: object) -> dict:
    """Answer the input."""
    return properties


plugin.run()
