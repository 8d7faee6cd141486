PLUGIN_MANIFEST = {
    "name": "rss_harvest",
    "display_name": "RSS / Atom Harvester",
    "version": "1.2.0",
    "module": "plugins.rss_harvest.plugin:RssHarvestPlugin",
    "capabilities": ["http", "kb", "cursor"],
    "default_feed_op": "ingest",
    "allowed_feed_ops": ["ingest"],
    "chat_callable_ops": ["preview"],
}
