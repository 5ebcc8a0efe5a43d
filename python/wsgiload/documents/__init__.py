"""The documents that wsgiload stores: typed, versioned, each with its JSON Schema."""
