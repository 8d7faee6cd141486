"""A Python plugin whose one operation answers its input."""

from mortise import Plugin

plugin = Plugin("bench.echo", version="1.0.0")


@plugin.tool
def echo(**properties: object) -> dict:
    """Answer the input."""
    return properties


plugin.run()
