"""From a question to a recorded answer: plan, read, draw, record, show."""
