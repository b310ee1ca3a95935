"""Tests of signals: the first one sets a flag, and the second one has its default effect."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

from estimator_core._checkpoint import preemption
from estimator_core._checkpoint.preemption import Preemption
from estimator_core.errors import PreemptedError

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


@pytest.fixture
def from_a_terminal():
    """Ensures that no signal is ignored. `nohup` makes processes ignore SIGHUP, and a run that it starts keeps this
    setting.
    """
    ignored = [number for number in SIGNALS if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


@pytest.mark.usefixtures("from_a_terminal")
@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_asks_and_the_handlers_come_back(number, capfd):
    before = signal.getsignal(number)
    with Preemption() as asked:
        assert not asked.requested
        assert asked.reason is None
        os.kill(os.getpid(), number)
        assert asked.requested
        assert asked.reason == number.name
        assert asked.remaining() is None
    assert signal.getsignal(number) is before
    assert capfd.readouterr().err == f"{number.name}: saving and stopping; the same signal again stops at once.\n"


def test_a_signal_that_comes_too_late_reaches_the_handler_of_the_program():
    """A training that ends by itself has not handled the signal, so it is raised again. A training that was stopped
    has, and without a handler nothing is raised.
    """
    told = []
    for own in (signal.SIG_DFL, signal.SIG_IGN, lambda *_: told.append("own")):
        before = signal.signal(signal.SIGTERM, own)
        try:
            with Preemption():
                signal.raise_signal(signal.SIGTERM)
            with contextlib.suppress(PreemptedError), Preemption():
                signal.raise_signal(signal.SIGTERM)
                raise PreemptedError("saved")
            with Preemption() as asked:
                asked.request("the platform announces it")
        finally:
            signal.signal(signal.SIGTERM, before)
    assert told == ["own"]


def test_the_grace_time_runs_out(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(preemption.time, "monotonic", lambda: now[0])
    asked = Preemption(grace_secs=30)
    assert asked.remaining() is None
    asked.request("the platform announces it")
    now[0] += 12
    assert asked.remaining() == 18
    asked.request("again")
    assert asked.reason == "the platform announces it"
    now[0] += 100
    assert asked.remaining() == 0


def test_the_same_signal_from_two_sides_counts_once():
    with Preemption() as asked:
        for _ in range(3):
            signal.raise_signal(signal.SIGINT)
        assert asked.requested


def test_a_second_interrupt_stops_at_once(monkeypatch):
    monkeypatch.setattr(preemption, "_SAME_SIGNAL_SECS", -1)
    # A process that a shell starts in the background ignores SIGINT, so the test installs the handler it needs.
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with Preemption():
            signal.raise_signal(signal.SIGINT)
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, inherited)


def test_a_second_sigterm_ends_the_process():
    program = """
        import signal
        from estimator_core._checkpoint import preemption
        from estimator_core._checkpoint.preemption import Preemption
        preemption._SAME_SIGNAL_SECS = -1
        with Preemption():
            signal.raise_signal(signal.SIGTERM)
            print("still here", flush=True)
            signal.raise_signal(signal.SIGTERM)
            print("never", flush=True)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True)
    assert done.returncode == -signal.SIGTERM
    assert done.stdout == "still here\n"


def test_a_warning_and_then_sigterm_go_on_saving(monkeypatch):
    monkeypatch.setattr(preemption, "_SAME_SIGNAL_SECS", -1)
    with Preemption() as asked:
        signal.raise_signal(signal.SIGUSR1)
        signal.raise_signal(signal.SIGTERM)  # the default handler would end this process
        assert asked.reason == "SIGUSR1"


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda number, frame: None], ids=["nohup", "of the program"])
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_that_somebody_else_handles_is_left_alone(number, handler):
    before = signal.signal(number, handler)
    try:
        with Preemption() as asked:
            signal.raise_signal(number)
            assert not asked.requested
            assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, before)


def test_other_threads_install_nothing_and_can_ask():
    before = signal.getsignal(signal.SIGTERM)
    seen = []

    def elsewhere():
        with Preemption() as asked:
            seen.append(signal.getsignal(signal.SIGTERM))
            asked.request("notice")
            seen.append(asked.requested)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [before, True]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_workers_die_when_their_parent_says_so():
    program = """
        import os, signal
        from estimator_core._checkpoint.preemption import Preemption
        ready, tell = os.pipe()
        with Preemption() as asked:
            child = os.fork()
            if child == 0:
                os.write(tell, b"x")
                signal.sigtimedwait([], 30)
                os._exit(7)
            os.read(ready, 1)
            os.kill(child, signal.SIGTERM)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), asked.requested, flush=True)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60)
    assert done.stdout == f"{-signal.SIGTERM} False\n", done.stderr


@pytest.mark.parametrize(
    ("error", "status"),
    [("PreemptedError('x')", 75), ("ProcessLostError('x', 1)", 75), ("ValueError('x')", 1), ("SystemExit(3)", 3)],
)
def test_a_program_that_lets_the_stop_pass_ends_resumable(error: str, status: int):
    code = (
        "import atexit\n"
        "from estimator_core._checkpoint.preemption import Preemption\n"
        "from estimator_core.errors import PreemptedError, ProcessLostError\n"
        "atexit.register(lambda: print('at exit'))\n"
        "with Preemption():\n    pass\nwith Preemption():\n    pass\n"
        f"raise {error}\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (status, "at exit\n")
    assert done.stderr.count("Traceback") == (error != "SystemExit(3)")
