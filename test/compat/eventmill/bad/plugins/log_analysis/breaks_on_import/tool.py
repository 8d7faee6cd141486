"""A release that nobody tried."""

import json

SETTINGS = json.loads("{'not': 'json'}")


class Breaks:
    pass
