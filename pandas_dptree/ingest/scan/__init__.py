"""Records of any engine, read in batches. The engine only reads them; no engine decides what a key is."""
