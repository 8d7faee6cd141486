"""A release that was never tried."""

import json

SETTINGS = json.loads("{'not': 'json'}")


class Breaks:
    pass
