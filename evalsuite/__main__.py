"""Let `python -m evalsuite` run the command `evalsuite`."""

import sys

from evalsuite.cli import main

sys.exit(main())
