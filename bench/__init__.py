"""CPU time per request and accuracy of loadgen and other load generators; run by ``make bench``.

wsgiload does not import this package. This package only starts programs; one file imports wsgiload.
"""
