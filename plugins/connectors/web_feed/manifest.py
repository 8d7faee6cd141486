PLUGIN_MANIFEST = {
    "name": "web_feed",
    "version": "1.0.0",
    "module": "plugins.web_feed.plugin:WebFeed",
    "display_name": "Web feed",
    "description": "Takes the entries of an RSS 2.0 or Atom feed into a knowledge base.",
    "capabilities": ["http", "kb"],
    "default_feed_op": "ingest",
    "allowed_feed_ops": ["ingest"],
    "chat_callable_ops": ["peek"],
}
