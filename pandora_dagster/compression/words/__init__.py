"""Words as compression reads them: values and their forms, force, politeness, abbreviations."""
