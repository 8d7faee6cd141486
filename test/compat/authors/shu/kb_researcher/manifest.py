PLUGIN_MANIFEST = {"name": "kb_researcher", "version": "0.6.0", "module": "plugins.kb_researcher.plugin:KbResearcher",
                   "display_name": "Knowledge research", "capabilities": ["kb"], "chat_callable_ops": ["find", "outline", "quote", "topics"]}
