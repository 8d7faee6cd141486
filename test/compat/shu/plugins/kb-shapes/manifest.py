PLUGIN_MANIFEST = {"name": "kb_shapes", "version": "1.0.0", "module": "plugins.kb_shapes.plugin:Plugin", "capabilities": ["kb"]}
