PLUGIN_MANIFEST = {
    "name": "calendar_sync",
    "version": "0.3.0",
    "module": "plugins.calendar_sync.plugin:CalendarSync",
    "capabilities": ["http", "storage"],
    "allowed_feed_ops": ["sync"],
    "default_feed_op": "sync",
}
