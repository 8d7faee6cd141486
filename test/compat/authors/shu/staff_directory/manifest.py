PLUGIN_MANIFEST = {"name": "staff_directory", "version": "1.1", "module": "plugins.staff_directory.plugin:StaffDirectory",
                   "display_name": "Staff directory", "capabilities": ["http", "identity", "cache"],
                   "chat_callable_ops": ["person", "chain", "mine"], "required_identities": [{"provider": "google", "mode": "user", "scopes": [], "optional": True}]}
