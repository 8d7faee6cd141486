PLUGIN_MANIFEST = {
    "name": "cloud_drive",
    "version": "2",
    "module": "plugins.cloud_drive.plugin:CloudDrive",
    "capabilities": ["http", "auth", "kb", "identity"],
    "op_auth": {"walk": {"provider": "google", "mode": "user", "scopes": ["drive.readonly"]}},
    "chat_callable_ops": ["walk", "read"],
}
