"""Everything that is displayed or written: reports, the HTML page, exports."""
