"""Everything that is shown or written: reports, the page, exports."""
