"""Plan and release both examples in Python: `python release.py`, after `python generate.py`."""

from __future__ import annotations

from pathlib import Path

import own_method  # type: ignore[import-not-found]  # registers its method and its assumption

import attrpriv as ap

EXAMPLES = {"clinic.yaml": own_method.KANTOROVICH, "wages.yaml": own_method.LAPLACE_ROWS}


def main() -> None:
    for name, method in EXAMPLES.items():
        with ap.Session(policy=ap.Policy.load(Path(__file__).parent / name)) as session:
            ranking = session.ranked().rankings[0]
            print(f"{name}: expected errors")
            for plan in ranking.plans:
                print(f"  {plan.mechanism:12} {plan.error.rmse:.3g}")
            print(session.release(mechanism=method.name))


if __name__ == "__main__":
    main()
