"""Metrics, one file each, in a folder for each subject; any module here is searched for them."""
