PLUGIN_MANIFEST = {
    "name": "chat_threads",
    "version": "1.0.0",
    "module": "plugins.chat_threads.plugin:ChatThreads",
    "capabilities": ["http"],
    "chat_callable_ops": ["summary"],
}
