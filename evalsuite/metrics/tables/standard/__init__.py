"""The H-Score as the paper describes it, without the accidents of its scripts: readers and parts."""
