"""Published results and other libraries, rerun side by side: `python -m bench.peers`, or `make bench-peers`.

| module | what it holds |
|---|---|
| `results` | what an experiment gives: tables whose cells have intervals, or are marked as quoted |
| `budget` | the time that an experiment may take, and how it tells how far it is |
| `environment` | other libraries, each in an environment of its own, measured in a process of its own |
| `running` | which experiments there are, and running those that have no result yet |
| `page` | docs/guide/compared.md, from the results and the texts in `page/` |
| `adult` | the UCI Adult data |
| every module that `running.EXPERIMENTS` names | one experiment: `NAME`, `TITLE`, `NEEDS` and `run(budget)` |

Scripts for other libraries' environments are in `inside/`; they import nothing from here.
"""
