"""`python -m affidavit`."""

from affidavit.interfaces.cli import main

if __name__ == "__main__":
    main()
