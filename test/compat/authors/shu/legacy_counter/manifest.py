PLUGIN_MANIFEST = {"name": "legacy_counter", "version": "0", "module": "plugins.legacy_counter.plugin:Plugin", "capabilities": ["cache", "kb"]}
