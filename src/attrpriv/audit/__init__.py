"""Audits: experiments that attack what an owner hands out, on tables made of public records."""
