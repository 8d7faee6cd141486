PLUGIN_MANIFEST = {"name": "csv_profiler", "version": "1.0", "module": "plugins.csv_profiler.plugin:CsvProfiler",
                   "display_name": "CSV profiler", "capabilities": [], "chat_callable_ops": ["profile", "chart", "report", "diff", "schema"]}
