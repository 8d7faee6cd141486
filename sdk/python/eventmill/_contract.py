"""Run the contract tests of an Event Mill tool: python3 -I -S .../eventmill/_contract.py PACKAGE TOOL

One JSON object is written to standard output; see _shim/contract.py.
"""

import os
import sys

_kit = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(_kit))

if sys.flags.no_site:
    from mortise._sites import directories  # noqa: E402

    sys.path += directories()

from eventmill._shim.contract import main  # noqa: E402

main(sys.argv[1:], _kit)
