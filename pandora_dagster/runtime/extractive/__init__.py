"""The embedded runtime `extractive`: rules, ranking and verbatim spans. Needs no weights and no network, and never invents a word."""
