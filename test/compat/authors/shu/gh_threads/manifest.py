# Issue tracker -> knowledge base
PLUGIN_MANIFEST = {
    "name": "issue_thread_sync",          # directory is gh_threads for historical reasons
    "version": "0.9.1",
    "module": "plugins.gh_threads.plugin:Plugin",
    "display_name": "Issue threads",
    "capabilities": ["http", "kb", "secrets"],
    "default_feed_op": "sync",
    "allowed_feed_ops": ["sync"],
    "op_auth": {"sync": {"secrets": {"tracker_token": {"allowed_scope": "system_or_user"}}}},
}
