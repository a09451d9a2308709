"""What others are measured by: group differential privacy, and the constant answer (docs/theory/yardsticks.md)."""
