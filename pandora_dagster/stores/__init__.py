"""The disk and the index: documents as files, all-or-nothing. Knows where things lie; decides nothing about a turn's phases."""
