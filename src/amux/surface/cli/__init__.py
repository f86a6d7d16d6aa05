"""The face for people and scripts: the `amux` command."""
