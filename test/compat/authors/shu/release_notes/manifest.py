PLUGIN_MANIFEST = {"name": "release_notes", "version": "1.0.0", "module": "plugins.release_notes.plugin:Plugin",
                   "capabilities": ["kb"], "allowed_feed_ops": ["publish"], "default_feed_op": "publish",
                   "chat_callable_ops": ["compose"]}
