"""Text as edits: Markdown, JSON and TOML of a workspace. Pure: bytes in, bytes out."""
