"""What runs within the sandbox: the warm interpreter and the programs that it forks.

The folder is bound into the sandbox by itself and runs there without the rest of evalsuite, so nothing
here imports anything but the standard library (and, for tables, pandas).

Nothing that a program writes is ever read as a protocol here. A program's text, its tables and its output
pass between it and the host in memory files, past the warm interpreter, which sees only a byte of status
from each; so no program finds traces of another's in the memory that it was forked from.
"""
