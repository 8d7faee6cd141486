PLUGIN_MANIFEST = {
    "name": "file_drive",
    "version": "1.0.0",
    "module": "plugins.file_drive.plugin:FileDrive",
    "capabilities": ["http"],
}
