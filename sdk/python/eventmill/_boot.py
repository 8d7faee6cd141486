"""Serve a package of Event Mill tools: python3 -I -S -X pycache_prefix=DIR .../eventmill/_boot.py PACKAGE

A script is compiled anew at every start, so there is little here; see _shim.
"""

import os
import sys

_kit = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(_kit))

if sys.flags.no_site:
    from mortise._sites import add  # noqa: E402

    add()

from eventmill._shim.server import start  # noqa: E402

start(sys.argv[1:], _kit)
