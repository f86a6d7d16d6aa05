"""Which modules of amux a module reaches by its imports: read from the source, nothing is run."""

from amux.bundle import SOURCE, imported, reached

__all__ = ["SOURCE", "imported", "reached"]
