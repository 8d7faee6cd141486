PLUGIN_MANIFEST = {"name": "log_stream", "version": "0.1.0", "module": "plugins.log_stream.plugin:Plugin",
                   "display_name": "Access log analysis", "capabilities": [], "chat_callable_ops": ["analyse"]}
