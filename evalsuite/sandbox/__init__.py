"""Runs untrusted Python from models inside bubblewrap; one warm interpreter forks a process for each program.

    sandbox = Sandbox()
    execution = await sandbox.run("print(df['population'].sum())", tables={"df": "cities.csv"})

docs/sandbox.md describes how programs are isolated.
"""

from evalsuite.sandbox.execution import Execution, TableFile, TableSource
from evalsuite.sandbox.inside import Limits
from evalsuite.sandbox.sandbox import ProgramSession, Sandbox

__all__ = ["Execution", "Limits", "ProgramSession", "Sandbox", "TableFile", "TableSource"]
