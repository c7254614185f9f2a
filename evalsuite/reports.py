"""Parts for a benchmark's own report: sections of tables, charts and passages."""

from evalsuite.output.reports.section import Cell, Chart, Column, Passage, Section, Series, Table

__all__ = ["Cell", "Chart", "Column", "Passage", "Section", "Series", "Table"]
