"""`report.html`: a run, or several, as a page that opens from a disk, without a server or a network.

The page is written by hand in `assets/`: plain HTML, CSS and JavaScript, put into one file as they stand.
What it shows comes in two parts: the overview, which is in the page itself, and the cases, as compressed
chunks of `records.jsonl`. The chunks of a small run are in the page, too; those of a large one lie beside
it, as scripts, because a page opened from a disk may load scripts and nothing else.
"""
