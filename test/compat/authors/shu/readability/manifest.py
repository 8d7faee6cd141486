PLUGIN_MANIFEST = {"name": "readability", "version": "1.0.0", "module": "plugins.readability.plugin:Readability",
                   "display_name": "Readability", "capabilities": ["cache"], "chat_callable_ops": ["score"]}
