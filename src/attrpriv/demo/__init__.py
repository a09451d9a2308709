"""The school: the paper's example, made and released. Everything in it is synthetic."""

from attrpriv.demo.school import Demo, DemoRow, run_demo, write_students

__all__ = ["Demo", "DemoRow", "run_demo", "write_students"]
