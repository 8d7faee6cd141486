PLUGIN_MANIFEST = {"name": "weather_chart", "version": "1.0.3", "module": "plugins.weather_chart.plugin:WeatherChart",
                   "display_name": "Weather chart", "capabilities": ["http", "cache"], "chat_callable_ops": ["forecast"]}
