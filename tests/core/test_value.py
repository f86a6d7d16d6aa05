from typing import ClassVar

import pytest

from amux.core.value import NOTHING, Value


class Point(Value):
    x: int
    y: int = 0


class Named(Point):
    name: str = "origin"


class Pair(Value, kw_only=False):
    KIND: ClassVar[str] = "pair"
    one: int
    other: int = 2


class Line(Value):
    ends: tuple[Point, ...]
    marks: dict[str, Point]


def test_fields_are_given_by_name_and_have_defaults() -> None:
    assert Point(x=1).fields() == {"x": 1, "y": 0}
    assert Named(x=1, name="a").fields() == {"x": 1, "y": 0, "name": "a"}
    with pytest.raises(TypeError, match="lacks x"):
        Point()
    with pytest.raises(TypeError, match="has no z"):
        Point(x=1, z=2)
    with pytest.raises(TypeError):
        Point(1)


def test_places_are_for_those_that_say_so() -> None:
    assert Pair(1) == Pair(one=1, other=2)
    assert Pair(1, 3).fields() == {"one": 1, "other": 3}
    assert Pair.KIND == Pair(1).KIND == "pair"
    with pytest.raises(TypeError, match="takes 2"):
        Pair(1, 2, 3)


def test_a_value_does_not_change() -> None:
    point = Point(x=1)
    with pytest.raises(AttributeError, match="frozen"):
        point.x = 2
    with pytest.raises(AttributeError, match="frozen"):
        del point.x
    assert not hasattr(point, "__dict__")
    with pytest.raises(TypeError):
        NOTHING["a"] = 1


def test_values_are_compared_by_kind_and_fields() -> None:
    assert Point(x=1) == Point(x=1, y=0)
    assert hash(Point(x=1)) == hash(Point(x=1, y=0))
    assert Point(x=1) != Point(x=2)
    assert Point(x=1) != Named(x=1)
    assert Point(x=1) != "Point(x=1, y=0)"


def test_a_copy_has_the_changes_and_the_rest() -> None:
    assert Point(x=1, y=2).replace(y=3) == Point(x=1, y=3)
    with pytest.raises(TypeError):
        Point(x=1).replace(z=3)


def test_plain_data_holds_no_value_at_any_depth() -> None:
    line = Line(ends=(Point(x=1), Point(x=2)), marks={"m": Point(x=3)})
    assert line.plain() == {
        "ends": [{"x": 1, "y": 0}, {"x": 2, "y": 0}],
        "marks": {"m": {"x": 3, "y": 0}},
    }
    assert repr(Point(x=1)) == "Point(x=1, y=0)"
