PLUGIN_MANIFEST = {
    "name": "glossary",
    "version": "0.3.0",
    "module": "plugins.glossary.plugin:GlossaryPlugin",
    "display_name": "Company glossary",
    "capabilities": ["kb", "storage"],
    "default_feed_op": "sync",
    "allowed_feed_ops": ["sync"],
    "chat_callable_ops": ["lint"],
}
