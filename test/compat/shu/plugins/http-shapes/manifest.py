PLUGIN_MANIFEST = {"name": "http_shapes", "version": "1.0.0", "module": "plugins.http_shapes.plugin:Plugin", "capabilities": ["http"]}
