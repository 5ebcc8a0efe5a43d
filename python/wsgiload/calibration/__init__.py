"""The noise floor of this machine: how it is measured, stored and looked up."""
