PLUGIN_MANIFEST = {"name": "sdk_imports", "version": "1.0.0", "module": "plugins.sdk_imports.plugin:Plugin", "capabilities": []}
