"""Files of a drive."""

PLUGIN_MANIFEST = {
    'name': 'drive_delta',
    'version': '1.0.0',
    'module': 'plugins.onedrive_ingest.plugin:DrivePlugin',
    'capabilities': ['http', 'kb', 'ocr', 'storage'],
    'default_feed_op': 'ingest',
    'allowed_feed_ops': ['ingest'],
}
