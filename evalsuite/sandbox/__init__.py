"""Runs untrusted Python that models wrote, inside bubblewrap, in processes that one warm interpreter forks.

    sandbox = Sandbox()
    execution = await sandbox.run("print(df['population'].sum())", tables={"df": "cities.csv"})

The isolation of programs is described in docs/sandbox.md.
"""

from evalsuite.sandbox.execution import Execution, TableFile, TableSource
from evalsuite.sandbox.inside import Limits
from evalsuite.sandbox.sandbox import ProgramSession, Sandbox

__all__ = ["Execution", "Limits", "ProgramSession", "Sandbox", "TableFile", "TableSource"]
