"""Completion scripts for bash, zsh and fish, made from the table of verbs.

Rule 1: a script knows words, options and fixed values; it never calls amux, so that a tab can
        neither wait nor start a Hub.
"""

from amux.surface.cli.verb import Option, Verb
from amux.surface.cli.verbs import GLOBAL_OPTIONS, VERBS

# Which words of a verb stand before the cursor: the longest beginning that the table has.
_FISH_HEAD = """# fish completion of amux, made by `amux completion fish`
complete -c amux -f
function __amux_lead
    set -l lead
    for word in (commandline -opc)[2..-1]
        string match -q -- '-*' $word; and continue
        set -l longer (string trim -- "$lead $word")
        contains -- $longer $__amux_leads; or break
        set lead $longer
    end
    echo "$lead"
end
"""


def bash() -> str:
    """Give the script for bash: what may follow, by the words that stand before."""
    cases = "".join(
        f"    {_quoted(lead)}) words={_quoted(' '.join(words))} ;;\n"
        for lead, words in _following().items()
    )
    values = "".join(
        f"    --{option.name}) COMPREPLY=($(compgen -W {_quoted(' '.join(option.choices))} "
        '-- "$current")); return ;;\n'
        for option in _options()
        if option.choices
    )
    return f"""# bash completion of amux, made by `amux completion bash`
_amux() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" before="" word words="" index
  case "${{COMP_WORDS[COMP_CWORD-1]}}" in
{values}    --file) COMPREPLY=($(compgen -f -- "$current")); return ;;
  esac
  for ((index = 1; index < COMP_CWORD; index++)); do
    word="${{COMP_WORDS[index]}}"
    [[ $word == -* ]] && continue
    case "${{before:+$before }}$word" in
    {_leads_pattern()}) before="${{before:+$before }}$word" ;;
    *) break ;;
    esac
  done
  case "$before" in
{cases}  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -F _amux amux
"""


def zsh() -> str:
    """Give the script for zsh, with what each word means."""
    cases = ""
    for lead, words in _following().items():
        described = " ".join(_quoted(_described(lead, word)) for word in words)
        cases += f"    {_quoted(lead)}) following=({described}) ;;\n"
    values = "".join(
        f"    --{option.name}) compadd -- {' '.join(option.choices)}; return ;;\n"
        for option in _options()
        if option.choices
    )
    return f"""#compdef amux
# zsh completion of amux, made by `amux completion zsh`
_amux() {{
  local before="" word
  local -a given following
  given=("${{(@)words[2,CURRENT-1]}}")
  case "${{given[-1]}}" in
{values}    --file) _files; return ;;
  esac
  for word in "${{(@)given}}"; do
    [[ $word == -* ]] && continue
    case "${{before:+$before }}$word" in
    {_leads_pattern()}) before="${{before:+$before }}$word" ;;
    *) break ;;
    esac
  done
  case "$before" in
{cases}  esac
  _describe amux following
}}
(( $+functions[compdef] )) && compdef _amux amux
"""


def fish() -> str:
    """Give the script for fish: one line for each word and option."""
    lines = [_FISH_HEAD + f"set -g __amux_leads {' '.join(_quoted(lead) for lead in _leads())}"]
    for lead, words in _following().items():
        test = f'test "$(__amux_lead)" = {_doubly_quoted(lead)}'
        for word in words:
            about = _described(lead, word).partition(":")[2]
            takes = _fish_option(word) if word.startswith("--") else f"-a {word}"
            lines.append(f"complete -c amux -n {_quoted(test)} {takes} -d {_quoted(about)}")
    return "\n".join(lines) + "\n"


SCRIPTS = {"bash": bash, "zsh": zsh, "fish": fish}


def _following() -> dict[str, list[str]]:
    """Tell for each beginning of a command line what may follow: words, values, options."""
    found: dict[str, list[str]] = {"": []}
    for verb in VERBS.values():
        for place, word in enumerate(verb.words):
            following = found.setdefault(" ".join(verb.words[:place]), [])
            if word not in following:
                following.append(word)
        found.setdefault(verb.name, [])
    for verb in VERBS.values():
        for positional in verb.positionals[:1]:
            found[verb.name] += positional.choices
        found[verb.name] += [f"--{name}" for name in verb.option_names]
    for words in found.values():
        words.append("--help")
    found[""].append("--version")
    return found


def _described(lead: str, word: str) -> str:
    """Give a word with what it means, in the form that zsh reads."""
    name = f"{lead} {word}".strip()
    verb = VERBS.get(name)
    if verb is not None:
        return f"{word}:{verb.summary}"
    if word.startswith("--"):
        return f"{word}:{_option_of(VERBS.get(lead), word).about}"
    return f"{word}:verbs of amux {name}" if any(_below(name)) else f"{word}:a value"


def _fish_option(word: str) -> str:
    option = next(one for one in _options() if one.name == word.removeprefix("--"))
    if option.kind == "flag":
        return f"-l {option.name}"
    if option.choices:
        return f"-l {option.name} -x -a {_quoted(' '.join(option.choices))}"
    return f"-l {option.name} -r" + (" -F" if option.name == "file" else "")


def _below(name: str) -> list[str]:
    return [other for other in VERBS if other.startswith(name + " ")]


def _option_of(verb: Verb | None, word: str) -> Option:
    for option in (*(verb.options if verb else ()), *GLOBAL_OPTIONS):
        if option.name == word.removeprefix("--"):
            return option
    raise KeyError(word)


def _options() -> list[Option]:
    found = {option.name: option for verb in VERBS.values() for option in verb.options}
    return [*found.values(), *GLOBAL_OPTIONS]


def _leads() -> list[str]:
    return [lead for lead in _following() if lead]


def _leads_pattern() -> str:
    return "|".join(_quoted(lead) for lead in _leads())


def _doubly_quoted(text: str) -> str:
    return f'"{text}"'


def _quoted(text: str) -> str:
    """Quote for all three shells: each reads an escaped quote between two quoted parts."""
    return "'" + text.replace("'", "'\\''") + "'"
