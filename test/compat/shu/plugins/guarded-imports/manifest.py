PLUGIN_MANIFEST = {"name": "guarded_imports", "version": "1.0.0", "module": "plugins.guarded_imports.plugin:Plugin", "capabilities": []}
