"""Gaussians on a card. Steps are handed over and come back later; what reads or rearranges waits for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from splatmeter.backend import Change, Exposures, GrowthRule, OptimizerState, TrainStep
from splatmeter.backends import lazy_adam
from splatmeter.backends.cuda.card import model_on, told_in_our_words
from splatmeter.backends.host_model import CHUNK_ROWS, chunks, without_moments
from splatmeter.backends.kernels import Kernels, Picture, exploration
from splatmeter.backends.lazy_adam import PENDING_AGES, LazyTable, Pending
from splatmeter.backends.native.engine import camera_row, look, rates_row
from splatmeter.densify.division import CHILDREN, CUT_DISTANCE, CUT_LENGTH, CUT_OPACITY, CUT_WIDTH, SHRINK
from splatmeter.densify.draws import FIRST_CHILD, RELOCATION, keys_of
from splatmeter.densify.prune import LOWEST_OPACITY
from splatmeter.errors import CardUnavailable, UsageError
from splatmeter.gaussians import gaussians
from splatmeter.ops import F32, F64, WIDTHS, Pinhole, RasterSettings, Rates, Similarity, Table

_NO_NUMBERS = Similarity(math.nan, math.nan)
_ARRAYS = list(WIDTHS)

NO_EXPOSURE = "--exposure affine is not there yet on a card; use --device cpu."
NO_REGION = "--densify-region is not there yet on a card; use --device cpu."


class CardTicket:
    """For one step; the model fills it in when the step's report has come."""

    __slots__ = ("__weakref__", "_model", "similarity")

    def __init__(self, model: CudaModel, similarity: Similarity | None = None) -> None:
        self._model = model
        self.similarity = similarity

    @property
    def ready(self) -> bool:
        if self.similarity is None:
            self._model.collect(wait=False)
        return self.similarity is not None

    def read(self) -> Similarity:
        if self.similarity is None:
            self._model.collect(wait=True)
        assert self.similarity is not None
        return self.similarity


class CudaModel:
    def __init__(self, card: Any, kernels: Kernels, table: Table, optimizer: OptimizerState) -> None:
        self._card = card = model_on(card)
        self._kernels = kernels  # of the CPU, for copies that are only read
        self._trainable = table.trainable
        self._momentum = optimizer.momentum
        self._current = False  # every row is up to date for certain
        # tickets hold the model and not the other way round: memory comes back as soon as nobody wants it
        self._tickets: WeakValueDictionary[int, CardTicket] = WeakValueDictionary()
        with told_in_our_words():
            card.upload(*(getattr(table, name) for name in WIDTHS))
            card.set_optimizer(*lazy_adam.constants(optimizer.momentum))
            if self._trainable:
                rates = [] if optimizer.rates is None else rates_row(optimizer.rates)
                card.set_account(optimizer.steps, rates, lazy_adam.drifts_of(optimizer.owed))

    @property
    def count(self) -> int:
        return self._card.count

    @property
    def card(self) -> Any:
        """The extension's, for who times its kernels."""
        return self._card

    # ---- learning -----------------------------------------------------------------------------------------
    def train_step(self, order: TrainStep) -> CardTicket:
        if not self._trainable:
            raise UsageError(
                "This model was read from a file: without optimizer moments it cannot be trained."
            )
        if order.exposure is not None:
            raise CardUnavailable(NO_EXPOSURE)
        card, photo = self._card, order.photo
        if card.stopped:
            return CardTicket(self, _NO_NUMBERS)
        self._current = self._current and not order.learns
        with told_in_our_words():
            number = card.learn(
                camera_row(order.camera),
                card_look(order.settings),
                photo.key,
                photo.pixels,  # mostly there already
                order.ssim_weight,
                rates_row(order.rates),
                order.learns,
            )
            ticket = self._tickets[number] = CardTicket(self)
            if order.explore is not None and self.count:
                self._explore(order)  # the card itself knows whether the step had a number
        return ticket

    def _explore(self, order: TrainStep) -> None:
        assert order.explore is not None
        asked = exploration(order.explore, order.rates, self._card.steps, self.count)
        rates, steps = asked.rates, asked.steps
        self._card.explore(
            asked.random_keys(),
            asked.noise_distance,
            asked.opacity_weight,
            asked.scale_weight,
            steps * rates.opacity,
            steps * rates.scale,
            asked.second_correction,
        )

    def collect(self, wait: bool) -> None:
        """Reports that have come, or all of them, into their tickets."""
        with told_in_our_words():
            reports = self._card.reports(wait)
        for step, l1, ssim, _visible, _pairs, stopped in reports:
            ticket = self._tickets.pop(step, None)
            if ticket is not None:
                ticket.similarity = _NO_NUMBERS if stopped else Similarity(l1, ssim)

    # ---- the set of Gaussians -----------------------------------------------------------------------------
    def settle(self) -> None:
        if not self._current:
            with told_in_our_words():
                self._card.settle()
            self._current = True

    def grow(self, rule: GrowthRule) -> Change:
        if rule.region:
            raise CardUnavailable(NO_REGION)
        if rule.strategy == "none":
            return Change(0, 0, 0)
        if rule.strategy == "mcmc":
            return self._relocate(rule)
        if rule.strategy not in ("gof", "3dgs", "cut"):
            raise UsageError(f"--densification {rule.strategy} is not there yet on a card; use --device cpu.")
        return self._change(rule, rule.threshold, rule.strategy in ("gof", "cut"))

    def _relocate(self, rule: GrowthRule) -> Change:
        self.settle()
        keys = keys_of(rule.seed, rule.step, RELOCATION)
        with told_in_our_words():
            return Change(*self._card.relocate(rule.budget or self.count, LOWEST_OPACITY, keys))

    def prune(self, lowest_opacity: float) -> Change:
        nothing = GrowthRule("3dgs", 0, 0, math.inf, 0.0, lowest_opacity, math.inf, None)
        return self._change(nothing, math.inf, False)

    def _change(self, rule: GrowthRule, threshold: float, by_absolute: bool) -> Change:
        """Rows are settled while they move."""
        keys = [keys_of(rule.seed, rule.step, FIRST_CHILD + child) for child in range(CHILDREN)]
        with told_in_our_words():
            change = self._card.grow(
                threshold,
                by_absolute,
                rule.lowest_opacity,
                rule.dense_scale,
                rule.largest_scale,
                SHRINK,
                rule.budget,
                keys,
                (CUT_DISTANCE, CUT_LENGTH, CUT_WIDTH, CUT_OPACITY) if rule.strategy == "cut" else None,
            )
        self._current = True
        return Change(*change)

    def reset_opacities(self) -> None:
        if not self._trainable:
            raise UsageError("Opacities are reset in training, and this model was read from a file.")
        self.settle()
        with told_in_our_words():
            self._card.reset_opacities()

    def refresh_filter(self, cameras: Sequence[Pinhole]) -> None:
        self.settle()
        with told_in_our_words():
            self._card.refresh_filter([camera_row(camera) for camera in cameras])

    # ---- looking ------------------------------------------------------------------------------------------
    def render(self, camera: Pinhole, settings: RasterSettings) -> Picture:
        size = (camera.height, camera.width)
        color, light = np.empty((3, *size), np.float32), np.empty(size, np.float32)
        with told_in_our_words():
            self._card.forward(camera_row(camera), card_look(settings), color, light)
        return Picture(color, light)

    def mean_opacity(self) -> float:
        if not self.count:
            return math.nan
        if self._current:
            with told_in_our_words():
                return self._card.summary()[0]
        parts = (self._settled(chunk) for chunk in chunks(range(self.count)))
        return sum(part.count * gaussians.mean_opacity(part) for part in parts) / self.count

    def intact(self) -> bool:
        with told_in_our_words():
            return self._card.whole and (not self.count or self._card.summary()[1] == self.count)

    def download(self, rows: slice) -> Table:
        wanted = range(self.count)[rows]
        if len(wanted) <= CHUNK_ROWS:
            return self._settled(wanted)
        parts = [self._settled(chunk) for chunk in chunks(wanted)]
        geometry, harmonics = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("geometry", "harmonics")
        )
        return without_moments(geometry, harmonics)

    def _settled(self, rows: range) -> Table:
        """Copies of these rows, brought up to date by the CPU: those on the card stay as they are."""
        pending = self._pending()
        names = _ARRAYS if pending is not None else _ARRAYS[:2]
        taken = {name: self.stored(name, slice(rows.start, rows.stop, rows.step)) for name in names}
        if pending is not None:
            part = LazyTable(**taken, pending=pending)
            self._kernels.settle(part)
        return without_moments(taken["geometry"], taken["harmonics"])

    def stored(self, array: str, rows: slice | NDArray[np.int64]) -> F32:
        """Whole stretches come down; what is wanted of them is chosen here."""
        moments = array not in ("geometry", "harmonics")
        numbers = np.arange(0 if moments and not self._trainable else self.count)[rows]
        if not len(numbers):
            return np.empty((0, WIDTHS[array]), np.float32)
        first, last = int(numbers.min()), int(numbers.max())
        stretch = np.empty((last - first + 1, WIDTHS[array]), np.float32)
        with told_in_our_words():
            self._card.download_array(_ARRAYS.index(array), first, stretch)
        whole = isinstance(rows, slice) and len(stretch) == len(numbers)
        return stretch if whole else stretch[numbers - first]

    # ---- exposures ----------------------------------------------------------------------------------------
    def expose(self, exposures: Exposures) -> None:
        raise CardUnavailable(NO_EXPOSURE)

    def exposures(self) -> None:
        return None

    # ---- the optimizer ------------------------------------------------------------------------------------
    def optimizer(self) -> OptimizerState:
        owed = lazy_adam.owed_of(self._drifts())
        return OptimizerState(self._card.steps, self._rates(), owed, self._momentum)

    def _pending(self) -> Pending | None:
        if not self._trainable:
            return None
        return lazy_adam.pending(self._card.steps, self._rates(), self._drifts(), self._momentum)

    def _rates(self) -> Rates | None:
        rates = self._card.rates
        return Rates(*rates) if rates else None

    def _drifts(self) -> F64:
        drifts = np.empty((2, PENDING_AGES))
        self._card.copy_drifts(drifts)
        return drifts


def card_look(settings: RasterSettings) -> tuple[int, float, bool, list[float], float, bool]:
    """Without the light cut, which only saves time: cards end pixels by the original's rule."""
    return look(settings)[:-1]
