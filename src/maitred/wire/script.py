"""Scripts: the steps of a command job, checked at submit with the path of each fault.

A step is a command, or a condition about a path; where its ends lead is the flow's business. A script that
passes ends: no step can be run twice, every target is there, and every way ends in `output` or `abort`.
"""

from typing import Annotated, Any, Literal

import msgspec
from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    GetJsonSchemaHandler,
    SkipValidation,
    Tag,
    TypeAdapter,
    ValidationError,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, InitErrorDetails

from maitred.wire.checks import Argument, RelativePath, Strict, argument, said, text_of
from maitred.wire.faults import MOST_FAULTS, faults_of
from maitred.wire.flow import MOST_STEPS, Flow, Mistake, order_mistakes

LABEL_BYTES = 128
MAX_TIMEOUT_SECONDS = 2_592_000
# The result tells each command again, and has to stay within what is kept of a result.
SCRIPT_BYTES = 256 * 1024

_RULES = {
    "": 'must be an object with "cmd" or "condition"',
    "cmd": "must be a list of 1 to 4096 texts, the program first, or text for the shell",
    "label": f"must be text of 1 to {LABEL_BYTES} bytes in UTF-8",
    "working_dir": "must be a relative path",
    "timeout": f"must be a number of seconds above 0, at most {MAX_TIMEOUT_SECONDS}",
    "condition": 'must be an object with "predicate" and "path"',
    "condition.predicate": "must be exists, file or dir",
    "condition.path": "must be a relative path",
}


def _kind_of_cmd(cmd: object) -> str:
    return "kind=text" if isinstance(cmd, str) else "kind=list"


_Cmd = Annotated[
    Annotated[list[Argument], Field(min_length=1, max_length=4096), Tag("kind=list")]
    | Annotated[str, Field(min_length=1), AfterValidator(argument), Tag("kind=text")],
    Discriminator(_kind_of_cmd),
]
_Label = Annotated[str, text_of(LABEL_BYTES), Field(json_schema_extra={"minLength": 1})]
_To = 'A label, an index in the same list, steps, or "next", "output" or "abort".'


class Condition(Strict):
    """What a path is: anything (`exists`), a `file`, or a directory (`dir`)."""

    predicate: Literal["exists", "file", "dir"]
    path: RelativePath


class CommandStep(Strict):
    """A program with its arguments, or text for the shell; if it ends with 0 it is complete, else failed."""

    cmd: _Cmd
    label: _Label | None = None
    working_dir: RelativePath | None = None
    timeout: Annotated[float, Field(gt=0, le=MAX_TIMEOUT_SECONDS)] | None = None
    on_complete: "SkipValidation[Target]" = Field("next", description=_To)
    on_fail: "SkipValidation[Target]" = Field("abort", description=_To)


class ConditionStep(Strict):
    """A question about the directory that the steps run in, and where each answer leads."""

    condition: Condition
    label: _Label | None = None
    on_true: "SkipValidation[Target]" = Field("next", description=_To)
    on_false: "SkipValidation[Target]" = Field("next", description=_To)


Step = CommandStep | ConditionStep
Target = str | int | Step | list[Step]
CommandStep.model_rebuild()
ConditionStep.model_rebuild()


def check_script(steps: list[Any]) -> list[Any]:
    """Check the steps of a script and give them as they are; `ValidationError` has all that is wrong."""
    if mistakes := _mistakes(steps):
        details = [
            InitErrorDetails(type=said(mistake.message), loc=mistake.path, input=None) for mistake in mistakes
        ]
        raise ValidationError.from_exception_data("script", details)
    return steps


def _mistakes(steps: list[Any]) -> list[Mistake]:
    if not steps:
        return [Mistake((), "must have at least one step")]
    flow = Flow(steps)
    found: list[Mistake] = []
    for node in flow.nodes:
        found += _step_mistakes(node.step, node.path)
        if len(found) >= MOST_FAULTS:
            break
    found += flow.mistakes
    # A target that is missing makes other steps unreachable; that is one mistake, not two.
    if found := found or order_mistakes(flow.nodes):
        return found
    size = len(msgspec.json.encode(steps))
    if size > SCRIPT_BYTES:
        return [Mistake((), f"has {size} bytes as JSON; at most {SCRIPT_BYTES}, put programs into files")]
    return []


def _step_mistakes(step: object, path: tuple[int | str, ...]) -> list[Mistake]:
    """Check all of one step but where it leads."""
    if not isinstance(step, dict) or not {"cmd", "condition"} & step.keys():
        return [Mistake(path, _RULES[""])]
    model = CommandStep if "cmd" in step else ConditionStep
    try:
        model.model_validate(step)
    except ValidationError as error:
        return [Mistake((*path, fault.path), fault.message) for fault in faults_of(error, _RULES)]
    return []


class _Described:
    """Describes a script in the schema by the models of its steps, which check them one at a time."""

    def __get_pydantic_json_schema__(self, _: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        steps = Annotated[list[Step], Field(min_length=1, max_length=MOST_STEPS)]
        return handler(TypeAdapter(steps).core_schema)


Script = Annotated[list[Any], AfterValidator(check_script), _Described()]
