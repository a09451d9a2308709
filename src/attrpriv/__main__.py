"""`python -m attrpriv`: the command line."""

from attrpriv.cli import main

if __name__ == "__main__":
    main()
