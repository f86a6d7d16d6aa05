from datetime import date
from zoneinfo import ZoneInfo

import pytest

from amux.journal.moment import Moment

SECONDS = 1_773_451_200.25  # 2026-03-14T01:20:00.250Z


@pytest.mark.requirement("J6")
def test_one_moment_is_spelled_for_json_and_for_markdown() -> None:
    moment = Moment.at(SECONDS, ZoneInfo("Asia/Shanghai"))
    assert moment.iso == "2026-03-14T01:20:00.250Z"
    assert moment.stamp == "2026-03-14 09:20 +08:00"
    assert moment.today == date(2026, 3, 14)
    assert moment.yesterday == date(2026, 3, 13)
    assert moment.epoch_ms == 1_773_451_200_250


@pytest.mark.requirement("J6")
def test_the_date_is_the_one_of_the_zone() -> None:
    assert Moment.at(SECONDS, ZoneInfo("America/New_York")).stamp == "2026-03-13 21:20 -04:00"
    assert Moment.at(SECONDS, ZoneInfo("Asia/Kathmandu")).stamp == "2026-03-14 07:05 +05:45"
