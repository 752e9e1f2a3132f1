"""What a release will do, described before it happens."""
