PLUGIN_MANIFEST = {
    "name": "hub_issues",
    "version": "0",
    "module": "plugins.hub_connector.plugin:HubIssues",
    "capabilities": ["http", "kb", "cursor", "storage", "secrets", "identity", "log"],
    "required_identities": [{"provider": "hub", "mode": "user", "scopes": ["repo"]}],
    "op_auth": {"sync": {"secrets": {}}},
    "allowed_feed_ops": ["sync"],
    "default_feed_op": "sync",
    "chat_callable_ops": ["whoami", "list"],
}
