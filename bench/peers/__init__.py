"""Published results and other libraries, rerun side by side: `python -m bench.peers`, or `make bench-peers`.

| module | what it holds |
|---|---|
| `results` | what an experiment gives: tables whose cells have intervals, or are marked as quoted |
| `budget` | the time that an experiment may take, and how it tells how far it is |
| `environment` | other libraries, each in an environment of its own, measured in a process of its own |
| `running` | which experiments there are, and running those that have no result yet |
| `page` | docs/guide/compared.md, from the results and the texts in `page/` |
| `adult` | the UCI Adult data |
| `quilts`, `additive`, `quantised` | published mechanisms for chains, counts and shared tables, from their definitions |
| `libraries` | other libraries by name and version, and what each needs |
| `here` | a script of `inside/` with the packages of this process |
| every module that `running.EXPERIMENTS` names | one experiment: `NAME`, `TITLE`, `NEEDS` and `run(budget)` |

Scripts for processes of their own are in `inside/`; they import nothing from here.
"""
