"""Start a plugin: python3 -I -S -X pycache_prefix=DIR .../mortise/_boot.py PLUGIN.py

A script is compiled at every start, so there is little here; see _start.
"""

import os
import sys

_sdk = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, _sdk)

if sys.flags.no_site:
    from mortise._sites import add  # noqa: E402

    add()

from mortise._start import start  # noqa: E402

start(sys.argv[1:], _sdk)
