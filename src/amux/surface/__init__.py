"""Faces: each decodes, calls, encodes; siblings are strangers."""
