"""The catalogue of servers: the contract of a server file, names, sizes, and the bundled apps."""
