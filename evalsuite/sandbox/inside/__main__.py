"""The warm interpreter: loads what programs need once, then forks for each program.

It is told what to do in packets of JSON on its standard input, one packet a message, from the host alone:

    {"preload": [...], "limits": {...}, "path": [...], "kept": [...]} first; answered by {"ready": true}
    {"op": "start", "key": 7, "timeout": 10.0, "once": false} with the descriptors (payload, stdout, stderr, files)
    {"op": "go", "key": 7, "timeout": 10.0}                           another round of the same program
    {"op": "end", "key": 7}                                           kills it
    {"op": "load", "modules": ["matplotlib.pyplot"]}                  imports them, for the programs to come

and answers each round with `{"key": 7, "ending": ..., "seconds": ..., "alive": ...}`, where the ending is
`ok`, `raised`, `timeout`, `cpu`, `memory`, `output`, `exit <status>` or `signal <number>`; or, where the
program's own code was not reached, `table`, `unfit`, `early <ending>` or `refused <reason>`, or `gone` if it
died between its rounds.
"""

from __future__ import annotations

import sys

from .forking import serve_forever

if __name__ == "__main__":
    sys.exit(serve_forever())
