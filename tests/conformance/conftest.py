"""The assertions of the scenarios tell as much as those of a test."""

import pytest

pytest.register_assert_rewrite("tests.conformance.scenarios", "tests.conformance.scenarios_asking")
