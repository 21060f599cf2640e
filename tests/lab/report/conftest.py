"""One lab and one page for all tests here: making them takes longer than looking at them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from sample_lab import rich_lab, write_renders

from splatmeter.lab import environment
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.report.page import page
from splatmeter.lab.report.pictures import find_renders, read_pictures
from splatmeter.lab.report.report_contents import report
from splatmeter.lab.report.report_document import ReportDocument


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        patch.setattr(environment, "git_state", lambda directory: {})  # three processes a run
        return rich_lab(tmp_path_factory.mktemp("lab"))


@pytest.fixture(scope="session")
def document(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> ReportDocument:
    folder = tmp_path_factory.mktemp("renders")
    sources = [
        find_renders(name, write_renders(folder / name, blur))
        for name, blur in (("baseline", 0.1), ("fused", 0.4))
    ]
    return report(lab, lab.root, read_pictures([source for source in sources if source], 3))


@pytest.fixture(scope="session")
def html(document: ReportDocument) -> str:
    return page(document)
