PLUGIN_MANIFEST = {
    "name": "mail_digest",
    "version": "1.2.0",
    "module": "plugins.mail_digest.plugin:MailDigest",
    "capabilities": ["http", "cursor", "identity", "cache"],
    "default_feed_op": "digest",
    "allowed_feed_ops": ["digest"],
}
