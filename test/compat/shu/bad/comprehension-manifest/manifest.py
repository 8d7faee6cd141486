NAMES = ["a", "b"]
PLUGIN_MANIFEST = {
    "name": "bad",
    "version": "1.0.0",
    "module": "plugins.bad.plugin:Plugin",
    "allowed_feed_ops": [name.lower() for name in NAMES],
}
