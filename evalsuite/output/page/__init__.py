"""`report.html`: one or several runs as a page that opens from a disk, without a server or a network.

The page consists of hand-written files in `assets/`: plain HTML, CSS and JavaScript, combined into one file without
changes. The page's data are an overview, which is always in the page itself, and the cases, as compressed chunks of
`records.jsonl`. A small run's chunks are also in the page. A large run's chunks are scripts next to the page, because a
page opened from a disk may load only scripts.
"""
