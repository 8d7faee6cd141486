"""Serve a Shu plugin: python3 -I -S -X pycache_prefix=DIR .../shu/_boot.py PACKAGE ABOUT

ABOUT is what the host knows of the plugin, a JSON object; see _shim/about.py. A
script is compiled anew at every start, so there is little here.
"""

import os
import sys

_kit = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [_kit, os.path.dirname(_kit)]

if sys.flags.no_site:
    from mortise._sites import add  # noqa: E402

    add()

from _shim.server import start  # noqa: E402

start(sys.argv[1:], _kit)
