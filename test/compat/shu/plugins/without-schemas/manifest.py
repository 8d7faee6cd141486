PLUGIN_MANIFEST = {
    "name": "without_schemas",
    "version": "1.0.0",
    "module": "plugins.without_schemas.plugin:Plugin",
    "capabilities": ["storage"],
    "chat_callable_ops": ["one", "two"],
    "allowed_feed_ops": ["three"],
    "default_feed_op": "three",
}
