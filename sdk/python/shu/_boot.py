"""Serve a Shu plugin: python3 -I -S -X pycache_prefix=DIR .../shu/_boot.py PACKAGE ABOUT

ABOUT is what the host knows of the plugin, a JSON object; see _shim/about.py. A
script is compiled at every start, so there is little here. What
multiprocessing spawns runs it again, with its parent's path.
"""

import os
import sys

_kit = os.path.dirname(os.path.abspath(__file__))
_path = sys.path[:]
sys.path[:0] = [_kit, os.path.dirname(_kit)]

if __name__ == "__main__":
    if sys.flags.no_site:
        from mortise._sites import add

        add()

    from _shim.server import start

    start(sys.argv[1:], _kit)
else:
    from _shim.load import join

    sys.path[:] = _path
    join()
