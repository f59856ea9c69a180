"""The sessions in a document: blocks ```console, whose commands are run and whose output must be what is shown.

    ```console TOOL …   each `$ command` must end with exit code 0 and print the lines below it; a line `...` among them
                        stands for any lines, and no lines at all for anything. Without one of the tools on the PATH
                        the session is not run, loudly.

The sessions of a document are one shell, in a copy of this repository, $REPOSITORY, whose build folder is on the PATH.
Blocks of other languages whose first line is a comment of a file's name (`# use.py`, `// app/main.cu`) are written to
that file before the sessions below them.
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE_NAME = re.compile(r"(?:#|//) ([\w./-]+\.(?:te|py|c|cu|txt|yaml))$", re.MULTILINE)
ANY = "..."
MARK = "\x01"   # before the number of a command, and before its exit code
LEFT_OUT = shutil.ignore_patterns(".git", "build*", "tests", "bench", "__pycache__")   # no session needs them, but for
TESTS = ("onnx_examples.py", "onnx_model.py")   # which make the models that are shown

# A clone has a build folder and the packages: it is a copy of what has been built here.
STAND_INS = {
    "cmake": '#!/bin/sh\ncase "$*" in *--preset*) ;; *) exec {real} "$@" ;; esac\n',
    "dpkg-query": "#!/bin/sh\necho install ok installed\n",
}


def blocks(document):
    """(line, language, words behind it, text) of each block."""
    text = document.read_text()
    for block in BLOCK.finditer(text):
        yield text.count("\n", 0, block.start()) + 2, block[1], block[2].split(), block[3]


def file_of(text):
    """The name in the block's first line, or None."""
    name = FILE_NAME.match(text)
    return name and name[1]


def commands(text):
    """(command, lines that it is to print) of a session."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, *lines = part.splitlines()
        yield command, lines


def missing_tools(words):
    return [tool for tool in words if not shutil.which(tool)]


# ---- running

def script_of(document):
    """A shell script of the document's files and commands. Each command prints MARK and its number before itself, MARK and its exit
    code behind."""
    lines, number = ["set -o pipefail\n"], 0
    for _, language, words, text in blocks(document):
        name = file_of(text)
        if language == "console" and not missing_tools(words):
            for command, _ in commands(text):
                lines.append(f"printf '{MARK}%s\\n' {number}\n{command}\nprintf '{MARK}%s\\n' $?\n")
                number += 1
        elif name and not (ROOT / name).exists():
            folder, file = shlex.quote(os.path.dirname(name) or "."), shlex.quote(name)
            lines.append(f"mkdir -p {folder} && printf %s {shlex.quote(text)} > {file}\n")
    return "".join(lines)


def make_copy(folder, binary):
    """The copy in `folder`; returns the environment of the sessions."""
    copy, stand_ins, home = folder / "rollerc", folder / "stand-ins", folder / "home"
    shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
    (copy / "build").symlink_to(binary.parent)
    (copy / "tests").mkdir()
    for file in TESTS:
        shutil.copy(ROOT / "tests" / file, copy / "tests")
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "all of it"]) if shutil.which("git") else ():
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=b", *command], cwd=copy, check=True)
    stand_ins.mkdir()
    for name, text in STAND_INS.items():
        (stand_ins / name).write_text(text.format(real=shutil.which(name)))
        (stand_ins / name).chmod(0o755)
    home.mkdir()
    return {**os.environ, "PATH": f"{stand_ins}:{binary.parent}:{os.environ['PATH']}", "HOME": str(home),
            "REPOSITORY": str(copy), "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}


def run(binary, document):
    """[(lines that it printed, exit code)] of the document's commands."""
    script = script_of(document)
    if MARK not in script:
        return []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        environment = make_copy(folder, pathlib.Path(binary))
        done = subprocess.run(["bash", "-c", script], env=environment, cwd=folder / "rollerc", timeout=300, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    parts = re.split(rf"{MARK}(\d+)\n", done.stdout)   # before, 0, output, status, between, 1, …
    return [(output.splitlines(), int(status)) for output, status in zip(parts[2::4], parts[3::4])]


# ---- judging

def is_printed(wanted, seen):
    """Are these the lines, where ANY of the wanted ones stands for any number of them?"""
    pattern = "".join(r"(?:.*\n)*" if line == ANY else re.escape(line) + r"\n" for line in wanted)
    return re.fullmatch(pattern, "".join(line + "\n" for line in seen)) is not None


def check(binary, document):
    """(command, what is wrong or None) of each; it says which were not run."""
    results = iter(run(binary, document))
    for line, language, words, text in blocks(document):
        if language != "console":
            continue
        if missing_tools(words):
            print(f"NOT TESTED: {document.name}:{line}: there is no {', '.join(missing_tools(words))} here")
            continue
        for command, wanted in commands(text):
            seen, status = next(results, (["the shell has ended"], -1))
            reason = None
            if status != 0:
                reason = f"exit code {status}: {' | '.join(seen[-5:])}"
            elif wanted and not is_printed(wanted, seen):
                reason = "\n".join(["prints", *seen, "(run_documents.py --update)"])
            yield f"{document.name}:{line} {command}", reason


def refreshed(wanted, seen):
    """The seen lines, with ANY where the wanted ones had it: as many lines before the first, as many behind the last."""
    if not wanted or is_printed(wanted, seen):
        return wanted
    if ANY not in wanted:
        return seen
    head, tail = wanted.index(ANY), wanted[::-1].index(ANY)
    return [*seen[:head], ANY, *seen[len(seen) - tail:]]


def update(binary, document):
    """Rewrites what the sessions print."""
    results = iter(run(binary, document))

    def renew(block):
        if block[1] != "console" or missing_tools(block[2].split()):
            return block[0]
        lines = []
        for command, wanted in commands(block[3]):
            seen, _ = next(results)
            lines += ["$ " + command, *refreshed(wanted, seen)]
        return "\n".join([f"```console{block[2]}", *lines, "```"])

    document.write_text(BLOCK.sub(renew, document.read_text()))
