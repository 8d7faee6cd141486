PLUGIN_MANIFEST = {
    "name": "chat_threads", "version": "0.8.0", "module": "plugins.chat_threads.plugin:ChatThreads",
    "display_name": "Team chat threads",
    "capabilities": ["http", "secrets", "kb", "cursor", "cache", "rate_limit"],
    "default_feed_op": "ingest", "allowed_feed_ops": ["ingest", "digest"],
    "op_auth": {"ingest": {"secrets": {"chat_token": {"allowed_scope": "system_or_user"}}}, "digest": {"secrets": {"chat_token": {"allowed_scope": "system_or_user"}}}},
}
