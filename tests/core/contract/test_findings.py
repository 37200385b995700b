"""All that is found between each two schemas of a table."""

from __future__ import annotations

import pytest

from tests.core.contract.findings import SCHEMAS, findings_from, kept_findings


@pytest.mark.parametrize("name", SCHEMAS)
def test_change_from_schema_to_each_other_one_has_the_kept_findings(name: str) -> None:
    assert findings_from(name) == kept_findings()[name]


def test_kept_findings_are_those_of_all_schemas() -> None:
    assert list(kept_findings()) == list(SCHEMAS)
