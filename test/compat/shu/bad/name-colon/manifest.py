PLUGIN_MANIFEST = {"name": "a:b", "version": "1.0.0", "module": "plugins.bad.plugin:Plugin", "capabilities": [], }
