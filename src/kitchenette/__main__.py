"""``python -m kitchenette`` is the command ``kitchenette``."""

from kitchenette.cli import main

if __name__ == "__main__":
    main()
