PLUGIN_MANIFEST = {
    "name": "status_monitor", "version": "2.1.0", "display_name": "Status monitor",
    "module": "plugins.status_monitor.plugin:StatusMonitor",
    "capabilities": ["http", "storage"],
    "default_feed_op": "check", "allowed_feed_ops": ["check"], "chat_callable_ops": ["check", "history"],
}
