PLUGIN_MANIFEST = {"name": "int", "version": "1.0.0", "module": "plugins.bad.plugin:Plugin", "capabilities": [], }
