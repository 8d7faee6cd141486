import pytest

from shu_plugin_sdk import FakeHostBuilder, assert_plugin_contract

from ..manifest import PLUGIN_MANIFEST
from ..plugin import WeatherChart, daily

HOURS = {"time": ["2024-06-01T00:00", "2024-06-01T12:00"], "temperature_2m": [1, 3], "weathercode": [0, 61]}


def test_contract():
    assert_plugin_contract(WeatherChart, PLUGIN_MANIFEST)


def test_daily():
    assert daily(HOURS, "celsius")["2024-06-01"] == {"low": 1, "high": 3, "sky": "rain"}


@pytest.mark.asyncio
async def test_forecast():
    host = (FakeHostBuilder()
            .with_http_response("GET", "http://wx/v1/forecast", {"status_code": 200, "headers": {}, "body": {"hourly": HOURS}})
            .build())
    host.cache.get.return_value = None
    out = await WeatherChart().execute({"op": "forecast", "latitude": 1.0, "longitude": 2.0, "base_url": "http://wx"}, None, host)
    assert out.status == "success"
    assert out.data["chart"]["labels"] == ["2024-06-01"]
