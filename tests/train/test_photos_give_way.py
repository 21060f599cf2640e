"""Where memory ends, kept photos make room for Gaussians; the run's bits stay as they are."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from running import Around, Make, bits, run, with_models

from splatmeter.backend import Backend, Change, GrowthRule
from splatmeter.errors import CardUnavailable, NotEnoughMemory
from splatmeter.photos.cache import PhotoCache


class Crowded(Around):
    """Has no room at the first densification until photos have given way twice."""

    refused = 0
    patience = 2

    def grow(self, rule: GrowthRule) -> Change:
        if Crowded.refused < Crowded.patience:
            Crowded.refused += 1
            raise NotEnoughMemory("no room")
        return self.model.grow(rule)


def test_photos_give_way_until_gaussians_fit_and_no_bit_changes(
    make: Make, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[int] = []
    give_way = PhotoCache.give_way

    def noted(self: PhotoCache) -> bool:
        kept.append(self.kept_bytes)
        return give_way(self)

    monkeypatch.setattr(PhotoCache, "give_way", noted)
    monkeypatch.setattr(Crowded, "refused", 0)
    crowded, roomy = make("crowded"), make("roomy")
    run(crowded, with_models(backend, Crowded))
    run(roomy, backend)
    assert len(kept) == 2 and 0 < kept[1] <= kept[0] / 2
    assert crowded.model_path is not None and roomy.model_path is not None
    last = "chkpnt40.safety.safetensors"
    assert bits(crowded.model_path / last) == bits(roomy.model_path / last)


def test_where_no_photo_is_left_the_run_ends_with_a_checkpoint(
    make: Make, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Crowded, "refused", 0)
    monkeypatch.setattr(Crowded, "patience", 10**6)
    config = make()
    with pytest.raises(NotEnoughMemory, match=r"no room.*The state so far"):
        run(config, with_models(backend, Crowded))
    assert 2 <= Crowded.refused < 20


def test_a_backend_that_knows_no_regions_refuses_the_option(make: Make, backend: Backend) -> None:
    config: Any = make(densify_region="1,0,0,0")
    with pytest.raises(CardUnavailable, match="--densify-region is not there yet on a card"):
        run(config, dataclasses.replace(backend, knows_regions=False))


def test_auto_takes_the_cpu_for_a_region(make: Make) -> None:
    assert make(densify_region="1,0,0,0").only_on_cpu == "--densify-region"
