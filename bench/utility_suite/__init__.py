"""The utility benchmark: a fixed suite of problems, tables drawn from their assumptions, and what every mechanism errs by.

| module | what it holds |
|---|---|
| `problems` | the suite |
| `worlds` | draws of tables, as the statistics that a plan reads |
| `simulation` | the errors of a plan's answers on such tables |
| `measuring` | every mechanism of the table on one problem, predicted and simulated |
| `reporting` | the table in Markdown, JSON and the figure |
"""
