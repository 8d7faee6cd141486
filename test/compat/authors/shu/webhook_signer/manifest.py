PLUGIN_MANIFEST = {
    "name": "webhook_signer", "version": "1.0.0", "module": "plugins.webhook_signer.plugin:WebhookSigner",
    "capabilities": ["secrets", "http"], "chat_callable_ops": ["verify"],
    "secrets": ["webhook_key"],
    "op_auth": {"send": {"secrets": {"webhook_key": {}}}, "verify": {"secrets": {"webhook_key": {"allowed_scope": "system_or_user"}}}},
}
