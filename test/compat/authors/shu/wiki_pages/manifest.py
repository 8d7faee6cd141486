"""Manifest of the wiki reader."""
from collections import OrderedDict

PLUGIN_MANIFEST = dict(OrderedDict([
    ("name", "wiki_pages"),
    ("version", "2.2.0"),
    ("display_name", "Wiki pages"),
    ("module", "plugins.wiki_pages.plugin:WikiPages"),
    ("capabilities", ["http", "kb", "cursor", "storage", "secrets"]),
    ("default_feed_op", "crawl"),
    ("allowed_feed_ops", ["crawl"]),
    ("chat_callable_ops", ["extract"]),
    ("required_identities", []),
]))
