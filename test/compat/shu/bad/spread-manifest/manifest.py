BASE = {"version": "1.0.0"}
PLUGIN_MANIFEST = {"name": "bad", **BASE, "module": "plugins.bad.plugin:Plugin"}
