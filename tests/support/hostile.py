"""More than 800 path texts that must never name a file: seeds x prefixes x suffixes."""

SEEDS = (
    # out of the scope, or into its inside
    "../x.md", "../../x.md", "../../../../../../etc/passwd", "..", ".", "./x.md", "a/../x.md",
    "a/../../x.md", "a/./x.md", "a//x.md", "/x.md", "//x.md", "/etc/passwd", "/etc/x.md",
    "$HOME/../x.md", "${IFS}/../x.md", "file:///etc/x.md",
    "../global-evil/x.md", "../users/x.md", "../../hub/settings.json", "../../run/hub.lock",
    "../../layout", "a/..", "a/b/../../../x.md", ".../../x.md", "..;/x.md", "..%2fx.md/../y.md",
    # other systems' forms
    "..\\x.md", "a\\..\\x.md", "\\x.md", "\\\\host\\share\\x.md", "//host/share/x.md", "C:\\x.md",
    "C:/x.md", "c:x.md", "a.md:stream", "x.md::$DATA", "CON.md", "con.md", "NUL.md", "aux.md",
    "COM1.md", "lpt9.md", "com¹.md", "conin$.md", "PRN/x.md", "nul .md/x.md", "a/CON.tar.md",
    # names that no file should have
    ".hidden.md", ".git/x.md", "-rf.md", "--help.md", " x.md", "x.md ", "x.md.", "a /x.md",
    "a./x.md", "\tx.md", "x\n.md", "x\r.md", "x\0.md", "x.md\0", "x\x7f.md", "x\x85.md",
    # look-alikes
    "x\u200b.md", "x\u202egnp.md", "\ufeffx.md", "x\u00ad.md", "x\u2066.md", "cafe\u0301.md",
    "x\u2028.md", "\u2029.md", "x\ue000.md", "x\U000e0041.md", "x\u0378.md", "\U0001d15e.md",
    # wild, quoted, too much
    "*.md", "?.md", 'x".md', "<x>.md", "a|b.md", "x" * 98 + ".md", "用" * 34 + "/x.md",
    "a/" * 8 + "x.md", ("x" * 99 + "/") * 5 + "x" * 20 + ".md", "x.txt", "x", "x.md/", "x.mdx", "",
)  # fmt: skip
PREFIXES = ("", "a/", "notes/用户/", "a/../", "./")
SUFFIXES = ("", "/x.md", "/../x.md")
# Seed, prefix and suffix can make one good name together; each of these is one.
HARMLESS = {"x/x.md", "a/x/x.md", "notes/用户/x/x.md"} | {
    f"{prefix}{name}/x.md" for prefix in PREFIXES[:3] for name in ("x.txt", "x.mdx", "x.md")
}


def hostile_paths() -> list[str]:
    """Give the texts, each once, in a fixed order."""
    found = dict.fromkeys(
        prefix + seed + suffix for seed in SEEDS for prefix in PREFIXES for suffix in SUFFIXES
    )
    return [text for text in found if text not in HARMLESS]
