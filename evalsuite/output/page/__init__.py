"""`report.html`: a page about one or several runs, which opens from a disk and needs no server or network.

The page is made of hand-written HTML, CSS and JavaScript from `assets/`, which are joined into one file without
changes. The page's data are an overview, which is always in the page itself, and the cases as compressed chunks of
`records.jsonl`. The page of a small run also contains the chunks of its records. The chunks of a large run are scripts
next to the page, because a page opened from a disk can load only scripts.
"""
