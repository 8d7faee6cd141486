from __future__ import annotations

from collections import OrderedDict
from typing import Any, Dict

from shu_plugin_sdk import HttpRequestFailed, PluginResult

_CODES = {0: "clear", 1: "mainly clear", 2: "partly cloudy", 3: "overcast", 45: "fog", 61: "rain", 71: "snow", 95: "thunderstorm"}


def to_unit(value: float, unit: str) -> float:
    return round(value * 9 / 5 + 32, 1) if unit == "fahrenheit" else round(value, 1)


def daily(hours, unit) -> "OrderedDict[str, Dict[str, Any]]":
    days: "OrderedDict[str, Dict[str, Any]]" = OrderedDict()
    for stamp, temp, code in zip(hours["time"], hours["temperature_2m"], hours["weathercode"]):
        if temp is None:
            continue
        d = days.setdefault(stamp[:10], {"low": temp, "high": temp, "codes": {}})
        d["low"], d["high"] = min(d["low"], temp), max(d["high"], temp)
        d["codes"][code] = d["codes"].get(code, 0) + 1
    for d in days.values():
        best = max(d["codes"].items(), key=lambda kv: (kv[1], kv[0]))[0]
        d["sky"] = _CODES.get(best, "code %s" % best)
        d["low"], d["high"] = to_unit(d["low"], unit), to_unit(d["high"], unit)
        del d["codes"]
    return days


class WeatherChart:
    name = "weather_chart"
    version = "1.0.3"

    def get_schema(self):
        return {
            "type": "object",
            "title": "Weather chart",
            "description": "Daily highs and lows as chart data.",
            "properties": {
                "op": {"type": "string", "enum": ["forecast"], "default": "forecast", "x-ui": {"hidden": True}},
                "latitude": {"type": "number", "minimum": -90, "maximum": 90, "x-ui": {"help": "Decimal degrees, north is positive"}},
                "longitude": {"type": "number", "minimum": -180, "maximum": 180},
                "unit": {"type": ["string", "null"], "enum": ["celsius", "fahrenheit", None],
                         "x-ui": {"enum_labels": {"celsius": "°C", "fahrenheit": "°F"}, "placeholder": "Auto (°C)"}},
                "base_url": {"type": "string", "default": "https://api.open-meteo.com", "x_ui": {"hidden": True}},
            },
            "required": ["latitude", "longitude"],
        }

    def get_output_schema(self):
        return {"type": "object", "required": ["chart"], "properties": {
            "chart": {"type": "object", "required": ["labels", "series"], "properties": {
                "labels": {"type": "array", "items": {"type": "string"}},
                "series": {"type": "array", "items": {"type": "object", "required": ["name", "values"]}}}},
            "sky": {"type": "object"}, "cached": {"type": "boolean"}}}

    async def execute(self, params, context, host):
        lat, lon = round(params["latitude"], 2), round(params["longitude"], 2)
        unit = params.get("unit") or "celsius"
        base = params.get("base_url") or "https://api.open-meteo.com"
        key = "wx:%s:%s:%s" % (base, lat, lon)
        hours, cached = await host.cache.get(key), True
        if hours is None:
            cached = False
            try:
                r = await host.http.fetch("GET", base + "/v1/forecast", timeout=10,
                                          params={"latitude": lat, "longitude": lon, "hourly": "temperature_2m,weathercode"})
            except HttpRequestFailed as exc:
                if exc.status_code == 400:
                    return PluginResult.err(exc.provider_message or "bad request", code="bad_place")
                raise
            hours = r["body"]["hourly"]
            await host.cache.set_safe(key, hours, ttl_seconds=1800)
        days = daily(hours, unit)
        if not days:
            return PluginResult.err("no temperatures", code="no_data")
        return PluginResult.ok({
            "chart": {"kind": "line", "labels": list(days), "series": [
                {"name": "high", "values": [d["high"] for d in days.values()]},
                {"name": "low", "values": [d["low"] for d in days.values()]}]},
            "sky": {k: d["sky"] for k, d in days.items()}, "cached": cached}, cost={"api_calls": 0 if cached else 1})
