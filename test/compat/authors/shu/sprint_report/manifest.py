PLUGIN_MANIFEST = {
    "name": "sprint_report", "version": "1.4.0", "module": "plugins.sprint_report.plugin:SprintReport",
    "display_name": "Sprint report", "capabilities": ["http", "secrets", "cache", "kb"],
    "default_feed_op": "report", "allowed_feed_ops": ["report"], "chat_callable_ops": ["report"],
    "op_auth": {"report": {"secrets": {"jira_token": {"allowed_scope": "system"}}}},
    "tags": ["reporting"], "homepage": "https://example.invalid/sprint",     # unknown keys, ignored
}
