PLUGIN_MANIFEST = {"name": "notes_locker", "version": "1.0.0", "module": "plugins.notes_locker.plugin:Notes",
                   "capabilities": ["storage"], "chat_callable_ops": ["write", "read", "list", "remove"]}
