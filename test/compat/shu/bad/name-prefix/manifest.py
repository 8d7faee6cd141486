PLUGIN_MANIFEST = {"name": "mcp-notes", "version": "1.0.0", "module": "plugins.bad.plugin:Plugin", "capabilities": [], }
