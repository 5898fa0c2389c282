"""Formats read into units: messages, records, tables, pages, mails."""
