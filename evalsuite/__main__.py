"""`python -m evalsuite` is the command `evalsuite`."""

import sys

from evalsuite.cli import main

sys.exit(main())
