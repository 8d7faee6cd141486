PLUGIN_MANIFEST = {
    "name": "feed_cases",
    "version": "1.0.0",
    "module": "plugins.feed_cases.plugin:Plugin",
    "capabilities": ["kb", "storage"],
    "default_feed_op": "sync",
    "allowed_feed_ops": ["sync", "large", "huge"],
}
