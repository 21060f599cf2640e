"""Adapters: foreign output becomes events, and the clock comes from arrivals alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splatmeter.errors import UsageError
from splatmeter.events import Evaluated, Event, Failed, Finished, Progress, Saved, Started, to_line
from splatmeter.lab.record.result import Window
from splatmeter.lab.record.summary import timing
from splatmeter.lab.trainers.adapter import Adapter, EventLines, Foreign
from splatmeter.lab.trainers.choose import Listening, adapter, guessed
from splatmeter.lab.trainers.original import Fork, Original, vertex_count
from splatmeter.lab.trainers.others import Generic, Gsplat, OpenSplat


def fed(listener: Adapter, *lines: tuple[float, str], stream: str = "stdout") -> list[Event]:
    return [event for seconds, text in lines for event in listener.line(stream, text, seconds)]


def of(kind: type, events: list[Event]) -> list:
    return [event for event in events if isinstance(event, kind)]


def bar(count: int, total: int, loss: float = 0.0123456) -> str:
    return f"Training progress:  12%|#2  | {count}/{total} [00:10<01:00, 453.00it/s, Loss={loss:.7f}]"


def test_the_bar_of_the_original_gives_steps_loss_and_times_of_arrival() -> None:
    progress = of(Progress, fed(Original(), (1.0, bar(10, 30000)), (3.0, bar(20, 30000, 0.5))))
    assert [(p.step, p.clock_seconds) for p in progress] == [(10, 0.0), (20, 2.0)]
    assert progress[-1].loss == 0.5


def test_the_printed_rate_never_becomes_the_speed() -> None:
    lines = [(0.1 * n, bar(10 * n, 1000)) for n in range(1, 101)]
    progress = of(Progress, fed(Original(0, 1000), *lines))
    measured = timing(progress, Window(0, 1000, 50))
    assert measured is not None and measured.rate == pytest.approx(100.0)


def test_a_resumed_bar_that_counts_from_zero_means_later_iterations() -> None:
    assert [p.step for p in of(Progress, fed(Original(3000, 4000), (1.0, bar(600, 1000))))] == [3600]
    assert [p.step for p in of(Progress, fed(Original(3000, 4000), (1.0, bar(3600, 4000))))] == [3600]


def test_an_evaluation_is_off_the_clock() -> None:
    report = "[ITER 3100] Evaluating test: L1 0.035384 PSNR 26.01 [27/01 10:00:00]"
    events = fed(
        Original(3000, 4000),
        *[(float(n), bar(10 * n, 1000)) for n in range(1, 11)],
        (60.0, report),
        *[(60.0 + n, bar(100 + 10 * n, 1000)) for n in range(1, 91)],
    )
    assert of(Evaluated, events)[0].metrics == {"l1": 0.035384, "psnr": 26.01}
    measured = timing(of(Progress, events), Window(3000, 4000, 50))
    assert measured is not None
    assert measured.rate == pytest.approx(10.0)
    assert measured.measured_steps == 940  # the ten steps across the evaluation are not timed
    assert measured.steps == 950


def test_tensors_printed_as_tensors_are_understood() -> None:
    text = (
        "[ITER 7000] Evaluating train : L1 tensor(0.0312, device='cuda:0') PSNR tensor(27.5, device='cuda:0')"
    )
    found = of(Evaluated, fed(Original(), (1.0, text)))
    assert found[0].metrics == {"l1": 0.0312, "psnr": 27.5} and found[0].split == "train"


def test_saving_names_the_model_and_its_header_tells_the_count(tmp_path: Path) -> None:
    model = tmp_path / "point_cloud" / "iteration_30" / "point_cloud.ply"
    model.parent.mkdir(parents=True)
    model.write_bytes(
        b"ply\nformat binary_little_endian 1.0\nelement vertex 77\nproperty float x\nend_header\n"
    )
    listener = Original(0, 30, output=tmp_path)
    events = fed(listener, (1.0, bar(30, 30)), (2.0, "[ITER 30] Saving Gaussians"))
    assert of(Saved, events)[0].path == str(model)
    assert of(Finished, list(listener.end(0, 3.0)))[0].gaussians == 77
    assert vertex_count(tmp_path / "missing.ply") == 0


def test_the_richer_console_gives_frames_and_rows_of_its_table() -> None:
    frame = "\x1b[32m17% 5000/30001\x1b[0m L:0.0762 3.6it/s V:62%/9.9GB R:57%/18.1GB"
    events = fed(Fork(0, 30000), (1.0, frame), (2.0, "│ TEST │ 0.035384 │ 26.01 │ 0.7890 │ 0.2412 │"))
    assert of(Progress, events)[0].step == 5000 and of(Progress, events)[0].loss == 0.0762
    found = of(Evaluated, events)[0]
    assert found.step == 5000 and found.split == "test"
    assert found.metrics == {"l1": 0.035384, "psnr": 26.01, "ssim": 0.7890, "lpips": 0.2412}


def test_redrawn_frames_do_not_move_the_clock() -> None:
    progress = of(Progress, fed(Original(), (1.0, bar(10, 100)), (9.0, bar(10, 100)), (10.0, bar(20, 100))))
    assert [p.step for p in progress] == [10, 20]


def test_gsplat_is_read_from_its_bar_and_its_statistics(tmp_path: Path) -> None:
    statistics = tmp_path / "stats"
    statistics.mkdir()
    record = {"psnr": 21.02, "ssim": 0.6344, "lpips": 0.303, "ellipse_time": 0.002, "num_GS": 605829}
    (statistics / "val_step6999.json").write_text(json.dumps(record))
    (statistics / "val_step9999.json").write_text("{cut off")
    listener = Gsplat(0, 30000, output=tmp_path)
    events = fed(
        listener,
        (1.0, "loss=0.034| sh degree=3| :  23%|###  | 6990/30000 [02:10<07:37, 50.26it/s]"),
        (2.0, "loss=0.033| sh degree=3| :  23%|###  | 6999/30000 [02:10<07:37, 50.26it/s]"),
        (2.1, "Step:  6999 {'mem': 3.78, 'ellipse_time': 130.7, 'num_GS': 605829}"),
        (2.2, "Running evaluation..."),
        (9.0, "PSNR: 21.020, SSIM: 0.6344, LPIPS: 0.303 Time: 0.002s/image Number of GS: 605829"),
        (9.5, "Rendering trajectory: 100%|#####| 520/520 [00:01<00:00, 262.06it/s]"),
        (10.0, "loss=0.047| sh degree=3| :  23%|###  | 7000/30000 [03:17<28:25:34,  4.45s/it]"),
    )
    progress = of(Progress, events)
    assert [(p.step, p.clock_seconds) for p in progress] == [(6990, 0.0), (6999, 1.0), (7000, 1.0)]
    ended = list(listener.end(0, 11.0))
    assert of(Evaluated, ended)[0].step == 7000
    assert of(Evaluated, ended)[0].metrics == {"psnr": 21.02, "ssim": 0.6344, "lpips": 0.303}
    assert of(Finished, ended)[0].gaussians == 605829


def test_opensplat_is_read_from_its_steps() -> None:
    events = fed(
        OpenSplat(0, 100),
        (1.0, "Step 10: 0.2345 (10%)"),
        (3.0, "Step 20: 0.1 (20%)"),
        (4.0, "Wrote splat.ply"),
    )
    assert [(p.step, p.loss, p.clock_seconds) for p in of(Progress, events)] == [
        (10, 0.2345, 0.0),
        (20, 0.1, 2.0),
    ]
    assert of(Saved, events)[0].path == "splat.ply"


def test_patterns_describe_any_other_trainer() -> None:
    listener = Generic(
        {
            "progress": r"it (?P<step>\d+) of (?P<total>\d+) loss (?P<loss>[\d.]+)",
            "evaluation": r"PSNR=(?P<psnr>[\d.]+)",
        },
        1000,
        2000,
    )
    events = fed(listener, (1.0, "it 5 of 1000 loss 0.25"), (2.0, "PSNR=25.5"))
    assert of(Progress, events)[0].step == 1005 and of(Progress, events)[0].loss == 0.25
    assert of(Evaluated, events)[0].metrics == {"psnr": 25.5}


@pytest.mark.parametrize("patterns", [{"progress": "no group"}, {"progress": "(unclosed"}, {"speed": "x"}])
def test_useless_patterns_are_refused_in_a_sentence(patterns: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        Generic(patterns)


def test_a_script_can_mark_its_stages_exactly() -> None:
    events = fed(
        Foreign(),
        (1.0, ':::SPLATMETER {"event": "progress", "step": 10, "loss": 0.5, "gaussians": 7}'),
        (2.0, ':::SPLATMETER {"event": "progress", "step": 20}'),
        (3.0, ':::SPLATMETER {"stage": "evaluation"}'),
        (
            50.0,
            ':::SPLATMETER {"event": "evaluated", "step": 20, "split": "test", "metrics": {"psnr": 20.0}}',
        ),
        (50.0, ':::SPLATMETER {"stage": "training"}'),
        (51.0, ':::SPLATMETER {"event": "progress", "step": 30}'),
        (52.0, ':::SPLATMETER {"event": "progress", "step": 40}'),
        (52.0, ":::SPLATMETER not json"),
        (52.0, ":::SPLATMETER 5"),
    )
    assert [(p.step, p.clock_seconds) for p in of(Progress, events)] == [
        (10, 0.0),
        (20, 1.0),
        (30, 1.0),
        (40, 2.0),
    ]
    assert of(Progress, events)[-1].gaussians == 7
    assert of(Evaluated, events)[0].metrics == {"psnr": 20.0}


def test_torchs_own_peaks_can_be_handed_over() -> None:
    listener = Foreign()
    fed(listener, (1.0, ':::SPLATMETER {"memory": {"stage": "training", "allocated": 100, "reserved": 300}}'))
    finished = of(Finished, list(listener.end(0, 2.0)))[0]
    assert finished.peak_memory_bytes == {"training": 100, "training reserved": 300}


def test_every_foreign_run_begins_with_started_and_a_failure_says_why() -> None:
    listener = Original()
    assert isinstance(fed(listener, (0.1, "Optimizing"))[0], Started)
    assert of(Failed, list(listener.end(-9, 1.0)))[0].message == "the trainer ended with signal 9"


def test_event_lines_ignore_everything_else_and_notice_a_silent_end() -> None:
    listener = EventLines()
    events = fed(listener, (1.0, "hello"), (2.0, '{"event": "nonsense"}'), (3.0, '{"no": 1}'))
    assert events == []
    assert isinstance(next(iter(listener.end(0, 1.0))), Failed)


def test_unknown_trainers_are_named() -> None:
    with pytest.raises(UsageError, match="nerf"):
        adapter("nerf", Listening())
    assert guessed(("python", "train.py")) == "fork"
    assert guessed(("python", "examples/simple_trainer.py", "default")) == "gsplat"


ADAPTERS = (
    EventLines,
    lambda: Original(3000, 4000),
    lambda: Fork(3000, 4000),
    Gsplat,
    OpenSplat,
    lambda: Generic({"progress": r"(?P<step>\S+)/(?P<total>\S+)", "evaluation": r"PSNR=(?P<psnr>\S+)"}),
)
SEEDS = (
    bar(10, 100),
    "[ITER 7] Evaluating test: L1 0.1 PSNR 20",
    "17% 5000/30001 L:0.0762",
    "│ TEST │ 0.03 │ 26.0 │",
    "loss=0.1| x| 5/10 [",
    "Step 10: 0.1 (1%)",
    "PSNR=x",
    "a/b",
    ":::SPLATMETER {}",
    '{"event": "progress", "step": "x", "clock_seconds": [], "loss": {}, "gaussians": null}',
)


@given(st.lists(st.one_of(st.text(), st.sampled_from(SEEDS), st.from_regex(r"Step \d{1,6}: [\d.e]+"))))
def test_no_output_of_a_trainer_can_break_an_adapter(lines: list[str]) -> None:
    for make in ADAPTERS:
        listener = make()
        events = fed(listener, *((float(n), line) for n, line in enumerate(lines)))
        for event in (*events, *listener.end(0, 99.0)):
            assert isinstance(to_line(event), str)
        steps = [event.step for event in of(Progress, events)]
        assert steps == sorted(set(steps))


def test_numbers_of_any_length_are_survived() -> None:
    assert of(Progress, fed(Original(), (1.0, f"Training progress: {'9' * 5000}/10 ["))) == []


@pytest.mark.parametrize(
    "line",
    [
        '{"event": "progress", "step": "10", "clock_seconds": 1.0, "loss": 0.1, "gaussians": 5}',
        '{"event": "progress", "step": true, "clock_seconds": 1.0, "loss": 0.1, "gaussians": 5}',
        '{"event": "evaluated", "step": 1, "split": "test", "metrics": {"psnr": "high"}}',
        '{"event": "evaluated", "step": 1, "split": "test", "metrics": [1]}',
        '{"event": "started", "config": {}, "step": 0, "gaussians": 1, "train_images": 5, "test_images": []}',
    ],
)
def test_events_with_fields_of_another_type_are_not_events(line: str) -> None:
    assert fed(EventLines(), (1.0, line)) == []
