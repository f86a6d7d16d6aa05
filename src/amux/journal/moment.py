"""The moment of one call: read once, spelled three ways (J6).

Rule 1: JSON has UTC with milliseconds; Markdown has local minutes with their offset.
Rule 2: a date is the local calendar's; days are named by it.
"""

from datetime import UTC, date, datetime, timedelta, tzinfo

from amux.core.value import Value


class Moment(Value, kw_only=False):
    """One reading of the clock, in the workspace's zone."""

    local: datetime
    """Aware; in the zone of AMUX_TZ or of the machine."""

    @classmethod
    def at(cls, seconds: float, zone: tzinfo | None = None) -> "Moment":
        """Give the moment that lies `seconds` after the epoch; no zone is the machine's."""
        return cls(datetime.fromtimestamp(seconds, UTC).astimezone(zone))

    @property
    def iso(self) -> str:
        """Spell it for JSON: `YYYY-MM-DDTHH:MM:SS.mmmZ`."""
        utc = self.local.astimezone(UTC)
        return f"{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03d}Z"

    @property
    def stamp(self) -> str:
        """Spell it for Markdown: `YYYY-MM-DD HH:MM ±HH:MM`."""
        offset = f"{self.local:%z}"
        return f"{self.minute} {offset[:3]}:{offset[3:5]}"

    @property
    def minute(self) -> str:
        """Spell its local date and minute: `YYYY-MM-DD HH:MM`."""
        return f"{self.local:%Y-%m-%d %H:%M}"

    @property
    def today(self) -> date:
        """Give its local date."""
        return self.local.date()

    @property
    def yesterday(self) -> date:
        """Give the local date before."""
        return self.today - timedelta(days=1)

    @property
    def epoch_ms(self) -> int:
        """Count milliseconds since the epoch."""
        return round(self.local.timestamp() * 1000)

    def later(self, span: timedelta) -> "Moment":
        """Give the moment that lies this much after it."""
        return Moment(self.local + span)
