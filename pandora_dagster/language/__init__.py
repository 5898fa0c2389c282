"""What the project knows of natural language: words, stems, stop words, sentences, dates, spelling. Pure functions."""
