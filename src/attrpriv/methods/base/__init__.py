"""What every method is made of: evidence and certificates, the parts of a plan, the plan itself.

A certificate is self-contained: `verify` recomputes the promise from the numbers stored in it, rounding up, and raises
`CertificateError` if it does not hold. What must never change: a NaN or an infinity anywhere fails the check, and nothing in a
certificate depends on the table's values.
"""
