"""Authority on disk: one JSON file a record, compared before it is replaced; live files."""
