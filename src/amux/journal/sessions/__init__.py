"""What sessions read and write: days, SUMMARYs, decisions, cards."""
