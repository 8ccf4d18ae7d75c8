"""The options shared by several commands: the engine, and its settings. Each is declared once, here.

The options of decoders come from `ladechat.catalog`: decoders that are registered before this module is imported have
their options.
"""

import contextlib
import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer
from msgspec.structs import asdict

from ladechat import catalog
from ladechat.engine_choice import EngineOfCommand, chosen_command
from ladechat.engine_options import NO_OPTIONS, QUANTIZATIONS, WAYS_OF_PASSES, EngineOptions
from ladechat.preferences import SAMPLING_NAMES, SETTINGS, Preferences, Setting, SettingsFile, SettingsRefused
from ladechat.protocol import Configure, Parameter, Settings, Value
from ladechat.refusing import check_count, fail, in_short, joined_with
from ladechat.server_address import is_server
from ladechat.server_options import place_of
from ladechat.terminal import say

SETTINGS_FILE, COMMAND, PRESET = "settings_file", "engine_command", "preset"
PREFERRED = ("model", "system", "max_new_tokens", *SAMPLING_NAMES)
"""The options for which the settings file has a value."""
MOST_SEARCH_SECONDS = 86_400
MOST_GPUS = 1024
"""The most GPUs that can compute with a model. No machine has as many."""

ENGINE = {
    name: kind for name, kind in get_type_hints(EngineOptions, include_extras=True).items() if name not in NO_OPTIONS
}
"""The model, its device and dtype, and the other options of an engine: each a field of `EngineOptions`."""

AUTOMATIC = catalog.DECODERS["auto"]
"""The decoder that chooses the draft length automatically; `AUTOMATIC.by_hand` is its manual form."""


def option_of(name: str) -> str:
    """Return the option of a parameter or field: --pool-prompt for pool_prompt."""
    return "--" + name.replace("_", "-")


def _sampling_option(setting: Setting) -> Any:
    short = (setting.option,) if setting.option else ()
    optional = setting.plain if setting.default is not None else setting.plain | None
    return Annotated[optional, typer.Option(option_of(setting.name), *short, help=setting.help)]


SAMPLING = {name: _sampling_option(SETTINGS[name]) for name in SAMPLING_NAMES}
"""The options of sampling: each a field of `Settings`."""

CHOICE: dict[str, Any] = {
    "decoder": Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            show_default=f"{AUTOMATIC.name}; {catalog.first_decoder(catalog.BUNDLED).name} with the bundled model",
            help=" ".join(f"{info.name}: {info.help}" for info in catalog.DECODERS.values()),
        ),
    ],
    "auto": Annotated[
        bool | None,
        typer.Option(
            show_default=f"on, but not with the bundled model, nor where an option of {AUTOMATIC.by_hand} is given",
            help=f"The same as --decoder {AUTOMATIC.name}, or with --no-auto as --decoder {AUTOMATIC.by_hand}.",
        ),
    ],
}
"""The options that choose the decoder."""

OF_PRESET = Annotated[str | None, typer.Option(metavar="NAME", help="Begin with what /save NAME has saved.")]


def _parameter_option(name: str, *short: str) -> Any:
    """Return the option of a decoder's parameter. It has no default, so that it is known whether it was given."""
    kinds: dict[Parameter, list[str]] = {}
    for info in catalog.DECODERS.values():
        for one in info.parameters:
            if one.name == name:
                kinds.setdefault(one, []).append(info.name)
    says = " ".join(
        f"{', '.join(owners)}: {one.help.removesuffix('.')} ({_values(one)})." for one, owners in kinds.items()
    )
    kind: Any = bool if isinstance(next(iter(kinds)).default, bool) else int
    option = option_of(name)
    spelled = f"{option}/--no-{option[2:]}" if kind is bool else option
    return Annotated[kind | None, typer.Option(spelled, *short, help=says, show_default=False)]


def _values(parameter: Parameter) -> str:
    """Return the range and the default, for brackets."""
    if isinstance(parameter.default, bool):
        return f"default: {'on' if parameter.default else 'off'}"
    return f"{parameter.least} to {parameter.most}, default: {parameter.default}"


def _parameter_options() -> Iterator[tuple[str, Any]]:
    """Yield an option for each parameter in the catalog. A label of one capital is its short form, unless taken."""
    taken = {spelling for each in (ENGINE, CHOICE, SAMPLING) for kind in each.values() for spelling in _spellings(kind)}
    for name, parameter in catalog.parameters().items():
        short = f"-{parameter.label}" if len(parameter.label) == 1 and parameter.label.isupper() else None
        if short is None or short in taken:
            yield name, _parameter_option(name)
        else:
            yield name, _parameter_option(name, short)
            taken.add(short)


def _spellings(kind: Any) -> tuple[str, ...]:
    declared: tuple[str, ...] = get_args(kind)[1].param_decls or ()
    return declared


PARAMETERS = dict(_parameter_options())
"""The options of decoders' parameters, by the name of the parameter."""


def with_engine_options(command: Callable[..., None], *, of_any_decoder: bool = False) -> Callable[..., None]:
    """Give a command all these options; they are passed, checked, as its parameter `engine`, an `EngineOptions`.

    The engine of a command with a parameter `context` may also be a command of the user's. With a second one named
    `settings_file` it receives the user's file, which supplies the options that are not given. `of_any_decoder` accepts
    parameters of other decoders than the chosen one.
    """
    taken = inspect.signature(command).parameters
    kinds = {**ENGINE, **CHOICE, **PARAMETERS, **SAMPLING}
    if "servers" in taken:  # it takes several of them, by the same option
        del kinds["server"]
    defaults: dict[str, Any] = {name: getattr(EngineOptions(), name) for name in ENGINE}
    defaults |= {name: getattr(Settings(), name) for name in SAMPLING_NAMES}
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults.get(name), annotation=kind)
        for name, kind in kinds.items()
    ]

    own = [one for name, one in taken.items() if name not in ("engine", SETTINGS_FILE, "context")]
    reads_file, takes_command = SETTINGS_FILE in taken, "context" in taken
    own.insert(0, inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context))
    if takes_command:
        shared.append(
            inspect.Parameter(COMMAND, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=EngineOfCommand)
        )

    if reads_file and not of_any_decoder:
        shared.append(inspect.Parameter(PRESET, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=OF_PRESET))

    @wraps(command)
    def called(**given: Any) -> None:
        settings_file = SettingsFile() if reads_file else None
        if settings_file is not None and (preset := given.pop(PRESET, None)) is not None:
            _take_preset(settings_file, preset, given)
        preferences, typed = Preferences(), _given_by_name(given)
        chosen = set(typed)
        if settings_file is not None:
            preferences = settings_file.preferences
            given |= {name: getattr(preferences, name) for name in PREFERRED if name not in typed}
            given[SETTINGS_FILE] = settings_file
            chosen |= settings_file.names
        text, elsewhere = given.pop(COMMAND, None), None
        if not takes_command:
            del given["context"]
        elif given["context"].invoked_subcommand is None:
            local = [option_of(name) for name in ENGINE if name in typed]
            local += ["--server"] if given.get("servers") else []
            elsewhere = chosen_command(text, preferences.engine, local)
        engine = {name: given.pop(name, None) for name in ENGINE}
        if given.get("servers"):
            engine["model"] = catalog.BUNDLED if is_server(engine["model"]) else engine["model"]
        elif elsewhere is None:
            engine["server"], engine["model"] = place_of(engine["server"], engine["model"], named="model" in typed)
        if engine["server"] is not None:
            command(engine=_of_server(engine, given, typed), **given)
            return
        settings = _checked_settings(engine, given, preferences, of_any_decoder)
        if elsewhere is not None:
            elsewhere = replace(elsewhere, change=_change(settings, chosen))
        command(engine=EngineOptions(**engine, settings=settings, engine_command=elsewhere), **given)

    ordered = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own]
    called.__signature__ = inspect.Signature([*ordered, *shared])  # type: ignore[attr-defined]  # where typer looks
    called.__annotations__ = {one.name: one.annotation for one in [*ordered, *shared]}
    return called


def _of_server(engine: Mapping[str, Any], given: dict[str, Any], typed: Collection[str]) -> EngineOptions:
    """Return the options of an engine that asks a server, and take all options of engines out of `given`. Those of
    decoders, and of models that run here, are refused where they were typed: a server would not hear of them.
    """
    for name in (*ENGINE, *CHOICE, *PARAMETERS):
        if name not in ("server", "model") and name in typed:
            fail(
                f"{option_of(name)} is for models that run here, and a server decodes as it was started; leave it out."
            )
        given.pop(name, None)
    settings = checked(catalog.SERVER.name, {}, {name: given.pop(name) for name in SAMPLING_NAMES})
    return EngineOptions(server=engine["server"], model=engine["model"], settings=settings)


def _checked_settings(
    engine: Mapping[str, Any], given: dict[str, Any], preferences: Preferences, of_any_decoder: bool
) -> Settings:
    """Check the options of an engine, and return its settings, whose options are taken out of `given`."""
    check_computing(**{name: engine[name] for name in COMPUTING})
    parameters = {name: value for name in PARAMETERS if (value := given.pop(name)) is not None}
    first = preferences.decoder or catalog.first_decoder(engine["model"]).name
    decoder = chosen_decoder(given.pop("decoder"), given.pop("auto"), parameters, first)
    if not of_any_decoder:
        check_belong((decoder,), parameters)
    check_parameters(decoder, parameters)
    return checked(
        decoder, {**preferences.parameters, **parameters}, {name: given.pop(name) for name in SAMPLING_NAMES}
    )


def _take_preset(settings_file: SettingsFile, name: str, given: dict[str, Any]) -> None:
    """Take the settings of a preset as if they were typed, where others are not."""
    try:
        preset = settings_file.preset(name)
    except SettingsRefused as refused:
        fail(str(refused))
    settings_file.begun_with = name
    values = asdict(preset.preferences) | preset.preferences.parameters
    for key in (preset.names | preset.preferences.parameters.keys()) & given.keys() - _given_by_name(given):
        given[key] = values[key]
        given["context"].set_parameter_source(key, given["context"].get_parameter_source(PRESET))


def _given_by_name(given: Mapping[str, Any]) -> set[str]:
    """Return the names of the options that do not have their defaults."""
    source = given["context"].get_parameter_source
    return {name for name in given if getattr(source(name), "name", "") != "DEFAULT"}


def _change(settings: Settings, chosen: Collection[str]) -> Configure:
    """Return the change to the settings that were chosen, on the command line or in the settings file."""
    decides = {"decoder", "auto", *PARAMETERS} & set(chosen)
    return Configure(
        decoder=settings.decoder if decides else None,
        parameters=settings.parameters or None,
        **{name: getattr(settings, name) for name in SAMPLING_NAMES if name in chosen},
    )


def report(settings_file: SettingsFile) -> None:
    """Print the problems in the settings file."""
    for problem in settings_file.problems:
        say(problem.sentence)


def chosen_decoder(
    named: str | None, auto: bool | None, parameters: Mapping[str, Value], preferred: str = AUTOMATIC.name
) -> str:
    """Return the decoder that the options select: `named` by --decoder, or by --auto or --no-auto; else the preferred
    one, of the settings file or the model. A parameter that the automatic decoder would choose itself selects its
    manual form.
    """
    if named is None and auto is None and preferred in catalog.DECODERS:
        own = {one.name for one in catalog.DECODERS[preferred].parameters}
        if parameters.keys() <= own:
            return preferred
    by_hand = AUTOMATIC.by_hand or AUTOMATIC.name
    if named is None:
        own = {one.name for one in catalog.DECODERS[by_hand].parameters} - {one.name for one in AUTOMATIC.parameters}
        wanted = auto if auto is not None else not own & parameters.keys()
        return AUTOMATIC.name if wanted else by_hand
    if named not in catalog.DECODERS:
        *others, last = catalog.DECODERS
        fail(f"There is no decoder {named!r}; use --decoder {', '.join(others)} or {last}.")
    if auto is not None and named != (AUTOMATIC.name if auto else by_hand):
        fail(f"{'--auto' if auto else '--no-auto'} and --decoder {named} contradict each other; leave one of them out.")
    return named


def check_belong(decoders: Sequence[str], names: Iterable[str]) -> None:
    """Refuse parameters that none of the decoders has, as they would have no effect."""
    for name in names:
        owners = [info.name for info in catalog.DECODERS.values() if any(one.name == name for one in info.parameters)]
        if not set(owners) & set(decoders):
            chosen, have = joined_with("and", decoders), "has" if len(decoders) == 1 else "have"
            fail(
                f"{option_of(name)} is for the decoder{'s' * (len(owners) > 1)} {joined_with('and', owners)}, and "
                f"{chosen} {have} no such setting; leave it out, or choose another decoder."
            )


def check_parameters(decoder: str, parameters: Mapping[str, Value], option: str | None = None) -> None:
    """Refuse values out of range: the decoder's, or for parameters that it does not have, the range of those that do.
    They were all given with `option`; None: each with its own.
    """
    for name, value in parameters.items():
        owners = [info for info in catalog.DECODERS.values() if any(one.name == name for one in info.parameters)]
        own = [info for info in owners if info.name == decoder]
        declared = [one for info in own or owners for one in info.parameters if one.name == name]
        problems = [catalog.problem(one, value) for one in declared]
        if all(problems):
            fail(f"{declared[0].label} {problems[0]}; set it with {option or option_of(name)}.")


def checked(decoder: str, parameters: Mapping[str, Value], sampling: Mapping[str, Any]) -> Settings:
    """Return the settings; if any is invalid, end the program with a message."""
    for name, value in sampling.items():
        if (problem := SETTINGS[name].problem(value)) is not None:
            fail(f"{problem.removesuffix('.')}; set it with {option_of(name)}.")
    return Settings(decoder=decoder, parameters=dict(parameters), **sampling)


COMPUTING = ("quantize", "passes", "layer_search", "tensor_parallel", "lookahead_parallel")


def check_computing(
    quantize: str | None, passes: str, tensor_parallel: int, lookahead_parallel: int, layer_search: float = 0.0
) -> None:
    """Refuse unknown formats of quantisation and ways of computing passes, searches of more than a day, fewer than one
    GPU, quantised weights on several GPUs, and two ways to use these at once.
    """
    if quantize is not None and quantize not in QUANTIZATIONS:
        fail(f"Weights cannot be quantised to {quantize!r}; use --quantize {' or '.join(QUANTIZATIONS)}.")
    if passes not in WAYS_OF_PASSES:
        fail(f"Passes cannot be {passes!r}; use --passes {', '.join(WAYS_OF_PASSES[:-1])} or {WAYS_OF_PASSES[-1]}.")
    if not 0 <= layer_search <= MOST_SEARCH_SECONDS:
        fail(f"--layer-search has to be from 0 to {MOST_SEARCH_SECONDS:,} seconds, not {layer_search:g}.")
    for option, gpus in {"--tensor-parallel": tensor_parallel, "--lookahead-parallel": lookahead_parallel}.items():
        if not 1 <= gpus <= MOST_GPUS:
            fail(f"A model cannot be shared among {in_short(gpus)} GPUs; set 1, for no sharing, or more with {option}.")
        if gpus > 1 and quantize is not None:
            fail(f"Quantised weights cannot be shared among GPUs; leave out --quantize or {option}.")
    if tensor_parallel > 1 and lookahead_parallel > 1:
        fail("--tensor-parallel and --lookahead-parallel cannot be combined; leave one of them out.")


def check_length(max_new_tokens: int | None) -> None:
    """Refuse answers of no tokens, and lengths that the protocol cannot represent."""
    if max_new_tokens is not None:
        check_count("--max-new-tokens", max_new_tokens, 1)


def path_of(file: str) -> Path:
    """Return the path of a file that a user names, with ~ expanded to the home folder, if there is one."""
    path = Path(file)
    with contextlib.suppress(RuntimeError):
        return path.expanduser()
    return path
