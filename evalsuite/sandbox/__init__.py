"""Runs untrusted, model-written Python in bubblewrap, from one warm interpreter that forks.

    sandbox = Sandbox()
    execution = await sandbox.run("print(df['population'].sum())", tables={"df": "cities.csv"})

See docs/sandbox.md for what holds a program and how.
"""

from evalsuite.sandbox.execution import Execution
from evalsuite.sandbox.inside import Limits
from evalsuite.sandbox.sandbox import ProgramSession, Sandbox
from evalsuite.sandbox.tables import TableFile, TableSource

__all__ = ["Execution", "Limits", "ProgramSession", "Sandbox", "TableFile", "TableSource"]
