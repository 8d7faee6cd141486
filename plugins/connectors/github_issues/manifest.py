PLUGIN_MANIFEST = {
    "name": "github_issues",
    "version": "1.0.0",
    "module": "plugins.github_issues.plugin:GitHubIssues",
    "display_name": "GitHub issues",
    "description": "Takes the issues of a GitHub repository, each with its comments, into a knowledge base.",
    "capabilities": ["http", "kb", "secrets", "auth"],
    "secrets": ["github_token"],
    "default_feed_op": "ingest",
    "allowed_feed_ops": ["ingest"],
    "chat_callable_ops": ["show"],
    "op_auth": {
        "ingest": {"provider": "github", "mode": "user", "allowed_modes": ["user"], "scopes": ["repo"], "optional": True},
        "show": {"provider": "github", "mode": "user", "allowed_modes": ["user"], "scopes": ["repo"], "optional": True},
    },
}
