"""Which views are kept for testing, by their place in the list sorted by name."""

from __future__ import annotations

from splatmeter.errors import UsageError


def held_out(count: int, every: int, number: int | None) -> list[int]:
    """Every 8th (0, 8, 16, ...) by default; or `number` of them spread evenly: floor(i * count / number).

    Both begin with the first view and agree where count = number * every.
    """
    if number is not None:
        if not 1 <= number < count:
            raise UsageError(
                f"--test_count {number} does not fit a scene of {count} photos: use 1 to {count - 1}."
            )
        return [i * count // number for i in range(number)]
    if every < 1:
        raise UsageError(f"--test_every {every} makes no sense: use 2 or more, 8 is usual.")
    return list(range(0, count, every))
