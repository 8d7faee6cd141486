BASE = make()
PLUGIN_MANIFEST = {"name": "bad", **BASE, "module": "plugins.bad.plugin:Plugin"}
