PLUGIN_MANIFEST = {
    "name": "page_sync",
    "version": "1.0.0",
    "module": "plugins.page_sync.plugin:PageSync",
    "capabilities": ["http", "kb"],
    "allowed_feed_ops": ["sync"],
    "default_feed_op": "sync",
}
