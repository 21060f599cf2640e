"""The page that shows Gaussians: who can reach it, what it gets, and when."""

from __future__ import annotations

import builtins
import math
import socket
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any

import numpy as np
import psutil
import pytest

from splatmeter.errors import MissingExtra, UsageError
from splatmeter.listeners import viewer as viewer_module
from splatmeter.listeners.viewer import SHORTEST_PAUSE, Splats, Viewer, fitted, free_port, is_loopback

FACTS = {"Gaussians": "2", "SH degree": "0"}


def two_splats() -> Splats:
    return Splats(
        means=np.array([[0, 0, 0], [1, 2, 3]], np.float32),
        covariances=np.stack([np.eye(3), np.diag([4.0, 1.0, 0.25])]).astype(np.float32),
        colors=np.array([[255, 0, 0], [0, 128, 255]], np.uint8),
        opacities=np.array([[255], [64]], np.uint8),
    )


class Clock:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def viewer(clock: Clock) -> Iterator[Viewer]:
    pytest.importorskip("viser", reason="the viewer was not checked: viser (extra view) is not installed")
    opened = Viewer(port=0, now=clock)
    yield opened
    opened.close()


def pretend_somebody_looks(opened: Viewer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened._server, "get_clients", lambda: {0: object()})


def message_of(opened: Viewer) -> Any:
    """The model as it waits for whoever connects."""
    kept = opened._server._websock_server._broadcast_buffer.message_from_id.values()
    found = [message for message in kept if type(message).__name__ == "GaussianSplatsMessage"]
    assert len(found) == 1, "an older picture must not be kept beside the newest"
    return found[0]


# ---- the door ---------------------------------------------------------------------------------------------
def test_the_page_answers_on_loopback_and_nowhere_else(viewer: Viewer) -> None:
    with urllib.request.urlopen(viewer.url, timeout=20) as answer:
        assert answer.status == 200 and b"<html" in answer.read().lower()
    assert viewer.notices() == [f"Viewer: http://127.0.0.1:{viewer.port}"]
    others = [
        address.address
        for addresses in psutil.net_if_addrs().values()
        for address in addresses
        if address.family == socket.AF_INET and not is_loopback(address.address)
    ]
    for address in [*others, "127.0.0.2"]:
        with pytest.raises(OSError):
            socket.create_connection((address, viewer.port), timeout=2).close()


def test_a_port_in_use_is_told_and_the_next_one_taken() -> None:
    pytest.importorskip("viser", reason="the viewer was not checked: viser (extra view) is not installed")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        second = Viewer(port=port)
        try:
            assert second.port > port
            assert second.notices()[0] == f"Port {port} is in use; the viewer took {second.port}."
        finally:
            second.close()


def test_impossible_ports_and_hosts_are_told_in_one_sentence() -> None:
    with pytest.raises(UsageError, match="no port 70000"):
        free_port("127.0.0.1", 70_000)
    with pytest.raises(UsageError, match=r"cannot listen on 'no\.such\.host\.invalid'"):
        free_port("no.such.host.invalid", 8080)
    with pytest.raises(UsageError, match="finds no port"):
        free_port("192.0.2.1", 8080)  # an address this machine does not have


def test_other_hosts_get_a_warning(monkeypatch: pytest.MonkeyPatch, viewer: Viewer) -> None:
    monkeypatch.setattr(viewer._server, "get_host", lambda: "0.0.0.0")
    assert viewer.url == f"http://localhost:{viewer.port}"
    assert "no password" in viewer.notices()[-1]
    assert is_loopback("::1") and is_loopback("localhost") and not is_loopback("0.0.0.0")


def test_without_viser_the_install_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any, **more: Any) -> Any:
        if name == "viser":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtra, match=r"pip install 'splatmeter\[view\]'"):
        Viewer()


def test_no_page_can_make_the_server_publish_itself(viewer: Viewer) -> None:
    assert viewer._server.request_share_url() is None
    assert viewer._server._share_tunnel is None


def test_nothing_is_written_to_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("viser", reason="the viewer was not checked: viser (extra view) is not installed")
    Viewer(port=0).close()
    assert capfd.readouterr().out == ""


# ---- the picture ------------------------------------------------------------------------------------------
def test_the_page_gets_places_shapes_and_colours(viewer: Viewer) -> None:
    viewer.show(two_splats(), FACTS)
    props = message_of(viewer).props
    rows = np.asarray(props.buffer).reshape(2, 8)  # [N, 8] 32 bits each
    np.testing.assert_array_equal(rows[:, :3].copy().view(np.float32) * props.scale, two_splats().means)
    upper = rows[:, 4:7].copy().view(np.float16).astype(np.float64) * props.scale**2  # [N, 6]
    np.testing.assert_array_equal(upper, [[1, 0, 0, 1, 0, 1], [4, 0, 0, 1, 0, 0.25]])  # powers of two: exact
    np.testing.assert_array_equal(rows[:, 7:].copy().view(np.uint8), [[255, 0, 0, 255], [0, 128, 255, 64]])
    assert viewer._panel.content == "**Gaussians** 2\n\n**SH degree** 0"


def test_a_new_picture_replaces_the_old_one(viewer: Viewer) -> None:
    viewer.show(two_splats(), FACTS)
    one = two_splats()
    viewer.show(Splats(one.means[1:], one.covariances[1:], one.colors[1:], one.opacities[1:]), FACTS)
    assert np.asarray(message_of(viewer).props.buffer).size == 8


@pytest.mark.parametrize("size", [1e-6, 1e-3, 1.0, 1e4])
def test_16_bits_are_enough_at_every_scale_of_the_scene(size: float) -> None:
    spread = np.random.default_rng(1).uniform(0.05, 1, (5000, 3)) * size
    covariances = (np.eye(3) * spread[:, None, :] ** 2).astype(np.float32)  # [N, 3, 3]
    means, shown, unit = fitted(spread.astype(np.float32), covariances)
    half = shown.astype(np.float16).astype(np.float64) * unit**2
    np.testing.assert_allclose(half, covariances, rtol=2e-3)  # 11 bits of mantissa: 2^-11 and a little
    np.testing.assert_array_equal(means * np.float32(unit), spread.astype(np.float32))


def test_one_giant_does_not_cost_the_others_their_digits() -> None:
    covariances = np.tile(np.eye(3, dtype=np.float32) * 1e-4, (5000, 1, 1))
    covariances[7] *= 1e14
    _, shown, unit = fitted(np.zeros((5000, 3), np.float32), covariances)
    half = shown.astype(np.float16)
    assert np.isfinite(half).all()
    np.testing.assert_allclose(half[8].astype(np.float64) * unit**2, covariances[8], rtol=2e-3)


def test_no_gaussians_are_a_picture_too(viewer: Viewer) -> None:
    none = two_splats()
    viewer.show(Splats(none.means[:0], none.covariances[:0], none.colors[:0], none.opacities[:0]), FACTS)
    assert np.asarray(message_of(viewer).props.buffer).size == 0


# ---- when -------------------------------------------------------------------------------------------------
def test_nothing_is_due_while_nobody_looks(viewer: Viewer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not viewer.due()
    pretend_somebody_looks(viewer, monkeypatch)
    assert viewer.due()


def test_pictures_are_made_elsewhere_one_at_a_time_with_a_pause(
    viewer: Viewer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_somebody_looks(viewer, monkeypatch)
    go, where = threading.Event(), []

    def make() -> Splats:
        where.append(threading.current_thread())
        assert go.wait(20)
        return two_splats()

    viewer.offer(make, FACTS)
    clock.seconds += 1000
    assert not viewer.due(), "the last picture is still on its way"
    go.set()
    assert viewer._sending is not None
    viewer._sending.result(20)
    assert not viewer.due(), "the pause begins when the picture is sent"
    clock.seconds += SHORTEST_PAUSE + 1
    assert viewer.due() and where != [threading.main_thread()]


def test_expensive_pictures_come_less_often(
    viewer: Viewer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_somebody_looks(viewer, monkeypatch)
    viewer.offer(two_splats, FACTS, spent=2.0)
    assert viewer._sending is not None
    viewer._sending.result(20)
    assert not viewer.due()
    clock.seconds += 2.0 / viewer_module.LARGEST_SHARE - 1
    assert not viewer.due()
    clock.seconds += 60
    assert viewer.due()


def test_a_picture_that_fails_is_told_and_is_the_last(
    viewer: Viewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_somebody_looks(viewer, monkeypatch)

    def broken() -> Splats:
        raise ValueError("no paint")

    viewer.offer(broken, FACTS)
    assert viewer._sending is not None
    viewer._sending.exception(20)
    assert not viewer.due()
    assert viewer.complaint == "The viewer stopped (ValueError: no paint); training goes on."
    assert not math.isfinite(viewer._next)
