"""Scripts are checked at submit: each fault has its path, and whatever passes has an end."""

from itertools import cycle
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maitred.errors import Fault, InvalidJob
from maitred.wire import ScriptRun, decode_body, encode_body, parse_body
from maitred.wire.flow import ABORT, DEEPEST, MOST_STEPS, OUTPUT, Flow, Node
from maitred.wire.script import SCRIPT_BYTES

Script = list[Any]


def body(script: object) -> dict[str, Any]:
    return {"key": "k", "submitter": {"type": "user", "id": "1"}, "run": {"script": script}}


def faults(script: object) -> list[Fault]:
    try:
        parse_body(body(script))
    except InvalidJob as refused:
        return refused.faults
    return []


def paths(script: object) -> list[str]:
    found = [fault.path for fault in faults(script)]
    assert all(path == "run.script" or path.startswith("run.script.") for path in found)
    return [path.removeprefix("run.script").removeprefix(".") for path in found]


def step(cmd: str = "true", **more: Any) -> dict[str, Any]:
    return {"cmd": cmd, **more}


def asks(predicate: str = "file", path: str = "a", **more: Any) -> dict[str, Any]:
    return {"condition": {"predicate": predicate, "path": path}, **more}


def nested(levels: int) -> Script:
    script = [step()]
    for _ in range(levels - 1):
        script = [step(on_fail=script)]
    return script


GOOD: list[Script] = [
    [step()],
    [{"cmd": ["true"]}],
    [step(label="a", working_dir="b/c", timeout=0.5, on_complete="output", on_fail="abort")],
    [step(label=None, working_dir=None, timeout=None)],
    [step(on_fail="z"), step(on_fail="next"), step(label="z")],
    [step(on_complete=2), step(on_complete="output"), step(on_complete="output", on_fail=1)],
    [step(on_complete=1.0), step()],
    [step(on_complete="2"), step(label="2")],
    [step(on_fail=step(label="inner")), step(on_fail="output")],
    [step(on_fail=[step(on_complete=1), step()]), step()],
    [step(on_fail=[step(), step(label="inner")], on_complete="next"), step(on_complete="output")],
    [step(on_complete="inner", on_fail=[step(), step(label="inner")])],
    [asks(), step()],
    [asks("exists", "a/b", on_true="output", on_false=[asks("dir", "c", on_false="abort")])],
    nested(DEEPEST),
    [step() for _ in range(MOST_STEPS)],
    [step("x" * (SCRIPT_BYTES - len('[{"cmd":""}]')))],
]


@pytest.mark.parametrize("script", GOOD, ids=range(len(GOOD)))
def test_a_right_script_is_kept_as_it_was_sent(script: Script) -> None:
    run = parse_body(body(script))
    assert isinstance(run.run, ScriptRun)
    assert decode_body(encode_body(run, "local"))["run"] == {"script": script, "files": {}, "artifacts": []}


WRONG_STEPS: list[tuple[str, Any]] = [
    ("0", "true"),
    ("0", None),
    ("0", ["true"]),
    ("0", {}),
    ("0", {"label": "a"}),
    ("0.cmd", {"cmd": None}),
    ("0.cmd", {"cmd": ""}),
    ("0.cmd", {"cmd": []}),
    ("0.cmd", {"cmd": {"a": "b"}}),
    ("0.cmd", {"cmd": "a\0b"}),
    ("0.cmd", {"cmd": ["a"] * 4097}),
    ("0.cmd.1", {"cmd": ["a", 1]}),
    ("0.cmd.1", {"cmd": ["a", "b\0"]}),
    ("0.label", step(label="")),
    ("0.label", step(label=1)),
    ("0.label", step(label="é" * 65)),
    ("0.label", step(label="next")),
    ("0.label", asks(label="output")),
    ("0.working_dir", step(working_dir="/a")),
    ("0.working_dir", step(working_dir="a/../..")),
    ("0.working_dir", step(working_dir=".")),
    ("0.working_dir", step(working_dir=1)),
    ("0.timeout", step(timeout=0)),
    ("0.timeout", step(timeout=-1)),
    ("0.timeout", step(timeout=2_592_001)),
    ("0.timeout", step(timeout="1s")),
    ("0.timeout", step(timeout=True)),
    ("0.timeuot", step(timeuot=1)),
    ("0.on_true", step(on_true="next")),
    ("0.condition", {"condition": "a"}),
    ("0.condition", {**step(), **asks()}),
    ("0.condition.predicate", asks("link")),
    ("0.condition.predicate", {"condition": {"path": "a"}}),
    ("0.condition.path", asks(path="../a")),
    ("0.condition.path", asks(path="")),
    ("0.condition.path", {"condition": {"predicate": "dir"}}),
    ("0.condition.paht", {"condition": {"predicate": "dir", "path": "a", "paht": "a"}}),
    ("0.on_fail", asks(on_fail="next")),
    ("0.timeout", asks(timeout=1)),
]
WRONG_TARGETS: list[tuple[str, Any]] = [
    ("0.on_complete", step(on_complete="nowhere")),
    ("0.on_complete", step(on_complete="")),
    ("0.on_fail", step(on_fail="Next")),
    ("0.on_fail", step(on_fail=1)),
    ("0.on_fail", step(on_fail=-1)),
    ("0.on_fail", step(on_fail=0.5)),
    ("0.on_fail", step(on_fail=True)),
    ("0.on_fail", step(on_fail=None)),
    ("0.on_fail", step(on_fail=[])),
    ("0.on_fail", step(on_fail={})),
    ("0.on_fail.0", step(on_fail=["true"])),
    ("0.on_fail.0.cmd", step(on_fail=[{"cmd": 1}])),
    ("0.on_fail.cmd", step(on_fail={"cmd": 1})),
    ("0.on_fail.1.on_complete", step(on_fail=[step(), step(on_complete=2)])),
    ("0.on_fail.on_complete", step(on_fail=step(on_complete=1))),
    ("0.on_false.on_true.0.working_dir", asks(on_false=asks(on_true=[step(working_dir="..")]))),
    ("0.on_fail.label", step(label="a", on_fail=step(label="a"))),
    ("0.on_complete", step(on_complete=0)),
    ("0.on_fail", step(label="a", on_fail="a")),
    ("0.on_true", asks(on_true=0)),
    ("0.on_fail.on_fail", step(label="a", on_fail=step(on_fail="a"))),
]


@pytest.mark.parametrize(("path", "wrong"), [*WRONG_STEPS, *WRONG_TARGETS])
def test_a_wrong_step_is_one_fault_with_its_path(path: str, wrong: object) -> None:
    [fault] = faults([wrong])
    assert fault.path == f"run.script.{path}"
    assert fault.message


@pytest.mark.parametrize(
    ("path", "script"),
    [
        ("", []),
        ("", {}),
        ("", "true"),
        ("", None),
        ("", [step() for _ in range(MOST_STEPS + 1)]),
        ("", [step(on_fail=[step() for _ in range(MOST_STEPS)])]),
        ("", [step("x" * SCRIPT_BYTES)]),
        (".".join(["0", *(["on_fail", "0"] * (DEEPEST - 1)), "on_fail"]), nested(DEEPEST + 1)),
        # Steps that nothing leads to, the first of them.
        ("1", [step(on_complete="output"), step(), step()]),
        (
            "2",
            [step(on_complete="output", on_fail=1), step(on_complete="abort"), step()],
        ),
        ("0.on_fail.1", [step(on_fail=[step(on_complete="output"), step()])]),
        # Circles, at the end that leads back.
        ("1.on_complete", [step(label="a"), step(on_complete="a")]),
        ("2.on_fail", [step(), step(), step(on_fail=0)]),
        ("2.on_complete", [step(on_complete=2), step(), step(on_complete=1)]),
        ("1.on_fail.0.on_complete", [step(label="a"), step(on_fail=[step(on_complete="a")])]),
        ("1.on_false", [step(), asks(on_true="output", on_false=0)]),
    ],
)
def test_a_script_that_is_wrong_as_a_whole_is_one_fault_with_its_path(path: str, script: object) -> None:
    assert paths(script) == [path]


def test_all_faults_are_told_at_once() -> None:
    script = [
        step(label="a", timeout=0, on_fail="nowhere"),
        step(label="a", on_complete=[{"cmd": 5}]),
        asks(path="/", on_true=9),
    ]
    found = ["0.timeout", "1.on_complete.0.cmd", "2.condition.path", "1.label", "0.on_fail", "2.on_true"]
    assert paths(script) == found


def test_a_missing_label_is_not_told_again_as_a_step_that_is_never_reached() -> None:
    assert paths([step(on_complete="output", on_fail="claen"), step(label="clean")]) == ["0.on_fail"]


def test_two_circles_are_two_faults() -> None:
    script = [step(on_fail=2), step(on_complete=0), step(on_complete="output", on_fail=0)]
    assert paths(script) == ["1.on_complete", "2.on_fail"]


def test_a_fault_names_what_it_is_about() -> None:
    assert faults([step(label="build"), step(on_complete="build")]) == [
        Fault("run.script.1.on_complete", "leads back to 'build': the script would go in a circle")
    ]
    assert faults([step(), step(on_fail=[step(on_fail=1)])]) == [
        Fault("run.script.1.on_fail.0.on_fail", "is not the index of a step here, from 0 to 0")
    ]


def test_next_after_the_last_nested_step_is_the_step_after_its_parent() -> None:
    flow = Flow([step(on_fail=[step(on_fail=step()), step()]), step()])
    shown = {
        node.place: {end: to.place if isinstance(to, Node) else to for end, to in node.ends.items()}
        for node in flow.nodes
    }
    assert shown == {
        "0": {"on_complete": "1", "on_fail": "0.on_fail.0"},
        "0.on_fail.0": {"on_complete": "0.on_fail.1", "on_fail": "0.on_fail.0.on_fail"},
        "0.on_fail.0.on_fail": {"on_complete": "0.on_fail.1", "on_fail": "abort"},
        "0.on_fail.1": {"on_complete": "1", "on_fail": "abort"},
        "1": {"on_complete": "output", "on_fail": "abort"},
    }


# ---------------------------------------------------------------- any script

# On a busy machine making many scripts is slow; that says nothing of them.
MANY = settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
labels = st.sampled_from(["a", "b", "c", "next", "output", "abort"])
plain_targets = st.one_of(labels, st.sampled_from(["next", "output", "abort"]), st.integers(-1, 4))


def _steps(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    targets = st.one_of(plain_targets, inner, st.lists(inner, min_size=1, max_size=3))
    more = {"label": labels}
    commands = st.fixed_dictionaries(
        {"cmd": st.just("true")}, optional={**more, "on_complete": targets, "on_fail": targets}
    )
    conditions = st.fixed_dictionaries(
        {"condition": st.just({"predicate": "file", "path": "a"})},
        optional={**more, "on_true": targets, "on_false": targets},
    )
    return st.one_of(commands, conditions)


scripts = st.lists(st.recursive(_steps(st.just(step())), _steps, max_leaves=6), min_size=1, max_size=5)
# Without labels and backward indexes most scripts are right.
forward = st.lists(
    st.fixed_dictionaries(
        {"cmd": st.just("true")},
        optional={
            "on_fail": st.one_of(
                st.sampled_from(["next", "output", "abort"]),
                st.lists(st.just(step(on_fail="next")), min_size=1, max_size=3),
            )
        },
    ),
    min_size=1,
    max_size=6,
)


@MANY
@given(script=scripts | forward, ways=st.lists(st.integers(0, 1), min_size=1, max_size=12))
def test_a_script_that_passes_has_an_end_on_every_way(script: Script, ways: list[int]) -> None:
    if faults(script):
        return
    flow = Flow(script)
    node: Node | str = flow.nodes[0]
    been: set[Node] = set()
    turns = cycle(ways)
    while isinstance(node, Node):
        assert node not in been, "a step was run twice"
        been.add(node)
        node = list(node.ends.values())[next(turns)]
    assert node in (OUTPUT, ABORT)


@MANY
@given(script=scripts)
def test_circles_and_unreached_steps_are_found_if_there_are_any(script: Script) -> None:
    found = faults(script)
    flow = Flow(script)
    if flow.mistakes:
        assert found
        return
    reached = {node: _reached(node) for node in flow.nodes}
    circle = any(node in reached[node] for node in flow.nodes)
    never = {*flow.nodes[1:]} - reached[flow.nodes[0]]
    assert bool(found) == (circle or bool(never)), found


def _reached(start: Node) -> set[Node]:
    """Give all steps that come after one, in however many steps."""
    reached: set[Node] = set()
    ahead = [start]
    while ahead:
        for _, node in ahead.pop().next_steps():
            if node not in reached:
                reached.add(node)
                ahead.append(node)
    return reached


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), labels),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["cmd", "condition", "label", "on_fail", "on_true", "predicate", "path", "kind=list"]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@MANY
@given(script=json_values | st.lists(json_values, max_size=4))
def test_whatever_is_sent_as_a_script_is_taken_or_refused(script: object) -> None:
    assert len({fault.path for fault in faults(script)}) == len(faults(script))
