"""Arguments that are unknown, doubled, missing or of the wrong type, on every face."""

import hashlib
import json

import pytest

from tests.support.faces import ABSENT, Faces, Said, one_refusal

GOOD: dict[str, dict[str, object]] = {
    "search": {"query": "x", "path_prefix": "a", "limit": 3},
    "get": {"path": "a.md", "start_line": 1, "end_line": 2, "offset": 0},
    "upsert": {"path": "a.md", "content": "x", "expected_revision": ABSENT},
    "forget": {"path": "a.md", "expected_revision": ABSENT},
}
REQUIRED = {
    "search": ["query"],
    "get": ["path"],
    "upsert": ["path", "content", "expected_revision"],
    "forget": ["path", "expected_revision"],
}
WRONG: dict[type, list[object]] = {
    str: [1, True, None, ["x"], {"x": "y"}, 1.5],
    int: ["1", True, None, [1], {}, 1.5, 1.0],
}


def both(faces: Faces, verb: str, arguments: dict[str, object]) -> list[Said]:
    """Send the same JSON to the two faces that take JSON."""
    return [
        faces.rpc.post(f"/v1/memory/{verb}", json.dumps(arguments).encode()),
        faces.mcp.tool(f"memory_{verb}", arguments),
    ]


@pytest.mark.requirement("M48", "bug-17")
@pytest.mark.parametrize("verb", GOOD)
@pytest.mark.parametrize("name", ["project", "scope", "principal", "Path", "path ", "", "用户"])
def test_an_unknown_argument_is_named_and_not_ignored(faces: Faces, verb: str, name: str) -> None:
    error = one_refusal(both(faces, verb, GOOD[verb] | {name: "x"}), "invalid_argument")
    assert error["details"] == {"argument": name}


@pytest.mark.requirement("M48")
@pytest.mark.parametrize("verb", GOOD)
def test_an_argument_of_the_wrong_type_is_named(faces: Faces, verb: str) -> None:
    for name, value in GOOD[verb].items():
        for wrong in WRONG[type(value)]:
            error = one_refusal(both(faces, verb, GOOD[verb] | {name: wrong}), "invalid_argument")
            assert error["details"]["argument"] == name


@pytest.mark.requirement("M48")
@pytest.mark.parametrize("verb", REQUIRED)
def test_a_missing_argument_is_named(faces: Faces, verb: str) -> None:
    for name in REQUIRED[verb]:
        less = {key: value for key, value in GOOD[verb].items() if key != name}
        error = one_refusal(both(faces, verb, less), "invalid_argument")
        assert error["details"] == {"argument": name}


@pytest.mark.requirement("M48")
@pytest.mark.parametrize("verb", GOOD)
def test_a_doubled_argument_is_named_and_neither_value_is_taken(faces: Faces, verb: str) -> None:
    for name, value in GOOD[verb].items():
        text = json.dumps(GOOD[verb])[:-1] + f", {json.dumps(name)}: {json.dumps(value)}}}"
        faces.mcp.process.send(
            f'{{"jsonrpc":"2.0","id":"{verb}-{name}","method":"tools/call","params":'
            f'{{"name":"memory_{verb}","arguments":{text}}}}}\n'.encode()
        )
        result = faces.mcp.process.answer(f"{verb}-{name}")["result"]
        said = [
            faces.rpc.post(f"/v1/memory/{verb}", text.encode()),
            Said("mcp", result["content"][0]["text"], is_refusal=result["isError"]),
        ]
        error = one_refusal(said, "invalid_argument")
        assert error["details"] == {"argument": name}
    assert faces.rpc.get("a.md").answer["exists"] is False


@pytest.mark.requirement("M48", "M49")
@pytest.mark.parametrize(
    ("words", "argument"),
    [
        (["get", "--project=x", "a.md"], "--project"),
        (["show", "--limit=3", "a.md"], "--limit"),
        (["show", "--offset=1", "--offset=1", "a.md"], "offset"),
        (["show", "--offset=one", "a.md"], "offset"),
        (["show", "--offset=1.0", "a.md"], "offset"),
        (["show", "--offset", "--json", "a.md"], "offset"),
        (["show", "a.md", "b.md"], "b.md"),
        (["show"], "path"),
        (["search"], "query"),
        (["search", "--limit=", "x"], "limit"),
        (["upsert", "a.md"], "expected_revision"),
        (["forget", "a.md"], "expected_revision"),
        (["forget", "--expected-revision=absent"], "path"),
    ],
    ids=" ".join,
)
def test_the_command_line_names_what_is_wrong_with_it(
    faces: Faces, words: list[str], argument: str
) -> None:
    said = faces.cli.run("memory", *words)
    assert said.code == "invalid_argument"
    if words[0] != "get":  # there is no such verb, which is the first thing to say
        assert said.details == {"argument": argument}


@pytest.mark.requirement("M30", "M48")
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"start_line": 1, "offset": 1}, "offset"),
        ({"start_line": 3, "end_line": 2}, "end_line"),
        ({"start_line": -1}, "start_line"),
        ({"end_line": -1}, "end_line"),
        ({"offset": -1}, "offset"),
        ({"offset": 2}, "offset"),  # inside a character
        ({"offset": 5}, "offset"),  # beyond the end
        ({"offset": 10**17}, "offset"),
    ],
    ids=str,
)
def test_an_impossible_range_is_refused_alike(
    faces: Faces, arguments: dict[str, object], named: str
) -> None:
    faces.put("ranges/a.md", "a€".encode())
    said = [face.get("ranges/a.md", **arguments) for face in faces.all]
    error = one_refusal(said, "invalid_argument", "argument")
    assert error["details"]["argument"] == named


@pytest.mark.requirement("M30", "M48")
def test_a_number_too_large_for_any_file_is_refused_and_breaks_nothing(faces: Faces) -> None:
    faces.put("ranges/b.md", b"x\n")
    for name in ("offset", "start_line", "end_line"):
        said = [face.get("ranges/b.md", **{name: 10**400}) for face in (faces.rpc, faces.mcp)]
        assert said[0].body == said[1].body
        assert not said[0].is_refusal or said[0].code == "invalid_argument"
    assert faces.rpc.search("x", limit=10**400).code == "invalid_argument"
    assert faces.cli.get("ranges/b.md", offset="9" * 400).code == "invalid_argument"


@pytest.mark.requirement("M14", "M48", "M78")
@pytest.mark.parametrize("control", ["\0", "\x01", "\x1b", "\x7f", "\x9b"], ids=ascii)
def test_content_with_a_control_is_refused_alike(faces: Faces, folder: str, control: str) -> None:
    path = f"{folder}/zero.md"
    said = [face.upsert(path, f"a\n{control}b") for face in faces.all]
    error = one_refusal(said, "invalid_argument")
    assert error["details"] == {
        "argument": "content",
        "reason": "invisible_text",
        "character": f"U+{ord(control):04X}",
        "line": 2,
        "at": 2,
    }


@pytest.mark.requirement("M14")
def test_controls_that_are_in_a_document_are_read_alike(faces: Faces, folder: str) -> None:
    path = f"{folder}/controls.md"
    data = "".join(map(chr, [*range(1, 32), 127, *range(128, 160)])).encode()
    for face in faces.all:
        # Forgetting the last document of a folder takes the folder too.
        (faces.hub.memory_dir / folder).mkdir(exist_ok=True)
        (faces.hub.memory_dir / path).write_bytes(data)
        assert face.read_all(path) == data
        revision = hashlib.sha256(data).hexdigest()
        assert face.forget(path, revision).answer["already_absent"] is False


@pytest.mark.requirement("M14", "M48")
def test_content_that_is_not_utf8_is_refused_by_the_face_that_takes_bytes(faces: Faces) -> None:
    done = faces.hub.cli(
        "memory", "upsert", "bad.md", "--expected-revision", "absent", stdin=b"ok \xff"
    )
    said = Said("cli", done.stderr.decode().splitlines()[-1], is_refusal=True)
    assert said.code == "invalid_argument"
    assert said.details == {"argument": "content", "at": 3}
    assert faces.rpc.get("bad.md").answer["exists"] is False


@pytest.mark.requirement("M14", "M11", "M48")
def test_an_unpaired_surrogate_is_refused_wherever_it_stands(faces: Faces) -> None:
    for verb, name in [("upsert", "content"), ("get", "path"), ("search", "query")]:
        for lone in ("\\ud800", "x\\udfffy", "\\udc00\\ud800"):
            text = json.dumps(GOOD[verb] | {name: "@"}).replace('"@"', f'"{lone}"')
            faces.mcp.process.send(
                f'{{"jsonrpc":"2.0","id":"s","method":"tools/call","params":'
                f'{{"name":"memory_{verb}","arguments":{text}}}}}\n'.encode()
            )
            result = faces.mcp.process.answer("s")["result"]
            said = [
                faces.rpc.post(f"/v1/memory/{verb}", text.encode()),
                Said("mcp", result["content"][0]["text"], is_refusal=result["isError"]),
            ]
            one_refusal(said, "invalid_argument")
    assert faces.rpc.get("a.md").answer["exists"] is False
