"""One load: its options, the plan that the generator takes, and the generator that carries it
out."""
