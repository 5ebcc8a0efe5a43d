"""The servers that can be measured: the contract of a server file, names, sizes, and the bundled
apps."""
