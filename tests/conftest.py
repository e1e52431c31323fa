"""What holds for all tests."""

import signal


def pytest_configure() -> None:
    """Let programs that tests start end by Ctrl-C, also where a shell runs the tests in the background.

    Such a shell has the interrupt ignored, and a program would inherit that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
