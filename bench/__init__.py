"""What a request costs this load generator and others, and how true each is: run by ``make bench``.

Nothing of the product imports this package, and it imports nothing of the product: it drives
programs.
"""
