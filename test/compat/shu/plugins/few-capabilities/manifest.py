PLUGIN_MANIFEST = {"name": "few_capabilities", "version": "1.0.0", "module": "plugins.few_capabilities.plugin:Plugin", "capabilities": ["kb"]}
