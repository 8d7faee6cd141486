PLUGIN_MANIFEST = {
    "name": "key_probe", "version": "0.0.7", "module": "plugins.key_probe.plugin:Plugin", "display_name": "Licence probe",
    "capabilities": ["http", "secrets", "identity"], "chat_callable_ops": ["whoami", "seats"],
    "op_auth": {"seats": {"secrets": {"vendor_admin": {"allowed_scope": "user"}}}},
}
