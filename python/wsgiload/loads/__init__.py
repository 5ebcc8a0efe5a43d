"""One load: its options, the generator's plan, and the generator process."""
