PLUGIN_MANIFEST = {"name": "bad", "version": "1.0.0", "module": "plugins.bad.plugin:Plugin", "capabilities": []}
