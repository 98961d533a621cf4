"""What holds for every test: an interruption interrupts, however the tests were started."""

import signal

# A shell starts what it runs in the background with interruptions ignored, and every child inherits that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
