PLUGIN_MANIFEST = {"name": "sql_report", "version": "0.1.2", "module": "plugins.sql_report.plugin:Plugin", "display_name": "SQL on tables",
                   "capabilities": ["cache", "storage"], "chat_callable_ops": ["query", "chart"]}
