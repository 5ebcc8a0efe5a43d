"""What measurements can reveal: one record per check and alarm, beside its rule.

A rule is a pure function of measured values; it returns what its record's ``fired`` makes of them.
The generator's checks have their records and rules in Rust (``generator_checks``). Records of rules
that need a capacity search or another tool's results are beside these rules, in packages above.
"""
