"""Merge the files of a group in one worker, in Arrow."""
