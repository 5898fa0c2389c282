"""Natural language: words, stems, stop words, sentences, dates, spelling. Pure functions."""
