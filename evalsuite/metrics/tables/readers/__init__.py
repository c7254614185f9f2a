"""Read tables in raw text, HTML and LaTeX as grids of cell texts."""
