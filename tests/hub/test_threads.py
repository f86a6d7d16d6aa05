"""The threads that writes run in."""

import threading

import pytest

from amux.threads import Threads

FAR = 10.0


@pytest.mark.requirement("M42")
def test_what_waits_for_something_keeps_nothing_else_waiting() -> None:
    gate, done = threading.Event(), threading.Semaphore(0)

    def slow() -> None:
        gate.wait(FAR)
        done.release()

    with Threads(3, name="test") as threads:
        threads.run(slow)
        threads.run(done.release)
        assert done.acquire(timeout=FAR)
        gate.set()
        assert done.acquire(timeout=FAR)


@pytest.mark.requirement("M42")
def test_more_than_there_are_threads_for_is_done_in_turn_and_before_the_end() -> None:
    gate, both = threading.Event(), threading.Event()
    at_once, most, done = [0], [0], []
    lock = threading.Lock()

    def work(number: int) -> None:
        with lock:
            at_once[0] += 1
            most[0] = max(most[0], at_once[0])
            if at_once[0] == 2:
                both.set()
        gate.wait(FAR)
        with lock:
            at_once[0] -= 1
            done.append(number)

    with Threads(2, name="test") as threads:
        for number in range(20):
            threads.run(lambda number=number: work(number))
        assert both.wait(FAR)
        gate.set()
    assert sorted(done) == list(range(20))
    assert most == [2]


@pytest.mark.requirement("M42")
def test_one_thread_is_enough_for_what_comes_one_after_the_other() -> None:
    seen: set[int] = set()
    with Threads(8, name="test") as threads:
        for _ in range(50):
            done = threading.Event()
            threads.run(lambda done=done: (seen.add(threading.get_ident()), done.set())[1])
            assert done.wait(FAR)
            while not threads._idle:  # it says so a moment after it is done
                threading.Event().wait(0.001)
    assert len(seen) == 1
