#!/usr/bin/env python3
"""A second reading of ayegate's canonical JSON, to check the vectors and any other implementation against.

    reference.py                 check every vector beside this file
    reference.py FILE...         check these files
    reference.py -               canonical form and SHA-256 of the document on standard input

It shares no code with the Go implementation and is written to be read, not to be fast. Python 3.9, standard library only.
"""

import base64
import hashlib
import json
import pathlib
import re
import sys
from fractions import Fraction

DEFAULTS = {"bytes": 1 << 20, "depth": 64, "nodes": 100_000}
INFINITE = Fraction(2**1024 - 2**970)  # from here on a number rounds to an infinite double
ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
NUMBER = re.compile(r"(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?(?=[,}\] \n\r\t]|\Z)")


class Refused(Exception):
    """The argument is the code."""


def canonical(document, limits=None):
    """Returns the canonical form of bytes, as bytes, or raises Refused."""
    limits = {**DEFAULTS, **(limits or {})}
    if len(document) > limits["bytes"]:
        raise Refused("too_large")
    if document.startswith((b"\xef\xbb\xbf", b"\xfe\xff", b"\xff\xfe")):
        raise Refused("bom")
    try:
        text = document.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("bad_utf8") from None
    out = Reader(text, limits).document().encode("utf-8")
    if len(out) > limits["bytes"]:
        raise Refused("too_large")
    return out


class Reader:
    def __init__(self, text, limits):
        self.text, self.at = text, 0
        self.depth, self.nodes = limits["depth"], limits["nodes"]

    def peek(self):
        return self.text[self.at : self.at + 1]

    def space(self):
        while self.peek() and self.peek() in " \n\r\t":
            self.at += 1

    def want(self, token):
        if not self.text.startswith(token, self.at):
            raise Refused("syntax")
        self.at += len(token)

    def document(self):
        out = self.value()
        self.space()
        if self.peek():
            raise Refused("trailing_data")
        return out

    def value(self):
        self.space()
        self.nodes -= 1
        if self.nodes < 0:
            raise Refused("too_many_values")
        c = self.peek()
        if c and c in "{[":
            self.depth -= 1
            if self.depth < 0:
                raise Refused("too_deep")
            out = self.object() if c == "{" else self.array()
            self.depth += 1
            return out
        if c == '"':
            return quote(self.string())
        for word in ("true", "false", "null"):
            if re.compile(word + r"(?=[,}\] \n\r\t]|\Z)").match(self.text, self.at):
                self.at += len(word)
                return word
        return self.number()

    def array(self):
        self.want("[")
        self.space()
        items = []
        if self.peek() != "]":
            items.append(self.value())
            self.space()
            while self.peek() == ",":
                self.at += 1
                items.append(self.value())
                self.space()
        self.want("]")
        return "[" + ",".join(items) + "]"

    def object(self):
        self.want("{")
        self.space()
        members = {}
        if self.peek() != "}":
            self.member(members)
            while self.peek() == ",":
                self.at += 1
                self.space()
                self.member(members)
        self.want("}")
        ordered = sorted(members.items(), key=lambda m: m[0].encode("utf-16-be"))
        return "{" + ",".join(quote(name) + ":" + value for name, value in ordered) + "}"

    def member(self, members):
        name = self.string()
        self.space()
        self.want(":")
        if "\0" in name:
            raise Refused("nul_in_name")
        if name in members:
            raise Refused("duplicate_key")
        members[name] = self.value()
        self.space()

    def string(self):
        self.want('"')
        out = []
        while True:
            c = self.peek()
            self.at += 1
            if c == '"':
                return "".join(out)
            if c == "" or c < " ":
                raise Refused("syntax")
            if c != "\\":
                out.append(c)
                continue
            c = self.peek()
            self.at += 1
            if c != "u":
                if c not in ESCAPES:
                    raise Refused("syntax")
                out.append(ESCAPES[c])
                continue
            unit = self.unit()
            if 0xD800 <= unit < 0xDC00 and self.text.startswith("\\u", self.at):
                self.at += 2
                low = self.unit()
                if not 0xDC00 <= low < 0xE000:
                    raise Refused("lone_surrogate")
                unit = 0x10000 + ((unit - 0xD800) << 10) + low - 0xDC00
            elif 0xD800 <= unit < 0xE000:
                raise Refused("lone_surrogate")
            out.append(chr(unit))

    def unit(self):
        digits = self.text[self.at : self.at + 4]
        if not re.fullmatch("[0-9a-fA-F]{4}", digits):
            raise Refused("syntax")
        self.at += 4
        return int(digits, 16)

    def number(self):
        m = NUMBER.match(self.text, self.at)
        if not m:
            raise Refused("syntax")
        self.at = m.end()
        sign, whole, frac, exponent = m[1], m[2], m[3] or "", m[4] or "0"
        digits = (whole + frac).lstrip("0")
        if not digits:
            return "0"
        exponent = int(exponent[:40])  # 40 digits say as much as more would
        point = len(digits) - len(frac) + exponent  # the number is 0.DIGITS times ten to that power
        digits = digits.rstrip("0")
        if point - 1 < -9999:
            raise Refused("number_underflow")
        if point > 309 or point == 309 and Fraction("0." + digits) * 10**point >= INFINITE:
            raise Refused("number_overflow")
        return sign + layout(digits, point)


def layout(digits, point):
    """ECMAScript's Number::toString, for exact digits."""
    count = len(digits)
    if count <= point <= 21:
        return digits + "0" * (point - count)
    if 0 < point <= 21:
        return digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return "0." + "0" * -point + digits
    rest = "." + digits[1:] if count > 1 else ""
    return digits[0] + rest + "e" + ("+" if point > 0 else "") + str(point - 1)


def quote(text):
    out = []
    for c in text:
        out.append(SHORT.get(c) or ("\\u%04x" % ord(c) if c < " " else c))
    return '"' + "".join(out) + '"'


def sha256(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def call(server, tool, args):
    """Returns the canonical bytes of a call, or raises Refused."""
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,31}", server):
        raise Refused("server")
    control = any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 for c in tool)
    if not tool or control or len(tool.encode("utf-8")) > 256:
        raise Refused("tool")
    form = canonical(args or b"{}")
    if not form.startswith(b"{"):
        raise Refused("wrong_type")
    tail = ',"server":%s,"tool":%s,"v":1}' % (quote(server), quote(tool))
    return b'{"args":' + form + tail.encode("utf-8")


def parse(stored):
    """Returns stored if it is the canonical bytes of a call, or raises Refused."""
    try:
        members = json.loads(stored)
        args = stored[len(b'{"args":') : stored.rindex(b',"server":')]
        if call(members["server"], members["tool"], args) == stored:
            return stored
    except (Refused, ValueError, KeyError, TypeError):
        pass
    raise Refused("not_canonical")


DEFINITION = ["annotations", "description", "execution", "inputSchema", "name", "outputSchema", "title"]


def definition(tool):
    """Returns the bytes whose hash pins a tool, or raises Refused."""
    canonical(tool)
    if not tool.lstrip().startswith(b"{"):
        raise Refused("wrong_type")
    kept = []
    for name, value in Members(tool.decode("utf-8")).spans():
        if name in DEFINITION:
            kept.append((name, canonical(value.encode("utf-8"))))
    if not any(name == "name" for name, _ in kept):
        raise Refused("missing_member")
    return b"{" + b",".join(quote(n).encode() + b":" + v for n, v in sorted(kept)) + b"}"


class Members(Reader):
    """Splits an object that has been checked into names and the text of values."""

    def __init__(self, text):
        super().__init__(text, DEFAULTS)

    def spans(self):
        self.space()
        self.want("{")
        self.space()
        while self.peek() == '"':
            name = self.string()
            self.space()
            self.want(":")
            self.space()
            start = self.at
            self.value()
            yield name, self.text[start : self.at]
            self.space()
            if self.peek() == ",":
                self.at += 1
                self.space()


def digest(fields):
    """Returns the bytes whose hash is what a person decides about."""
    members = {name: fields.get(name, "") for name in ("request", "call", "agent", "session", "workspace", "plan", "policy")}
    members["definition"] = fields.get("definition")
    members["v"] = 1
    return canonical(json.dumps(members).encode("utf-8"))


def data(vector, name):
    """The bytes of a member, given as text or, with the suffix _base64, as base64."""
    if name + "_base64" in vector:
        return base64.b64decode(vector[name + "_base64"], validate=True)
    return vector.get(name, "").encode("utf-8")


def evaluate(vector):
    """Returns the canonical bytes that the vector's input leads to, or raises Refused."""
    kind = vector["kind"]
    if kind == "document":
        return canonical(data(vector, "input"), vector.get("limits"))
    if kind == "call":
        return call(vector["server"], vector["tool"], data(vector, "args"))
    if kind == "parse":
        return parse(data(vector, "input"))
    if kind == "definition":
        return definition(data(vector, "input"))
    if kind == "digest":
        return digest(vector["fields"])
    raise ValueError("unknown kind " + kind)


def check(path):
    """Prints every vector of a file that does not hold, and returns how many there are and how many hold."""
    total = good = 0
    for line in path.read_text("utf-8").splitlines():
        vector = json.loads(line)
        total += 1
        try:
            form = evaluate(vector)
            got = {"canonical": form.decode("utf-8"), "hash": sha256(form)}
        except Refused as refused:
            got = {"code": str(refused)}
        want = {k: vector[k] for k in ("canonical", "hash", "code") if k in vector}
        if got == want:
            good += 1
        else:
            print("%s: %s: got %s" % (path.name, vector["id"], json.dumps(got)[:300]))
    return total, good


def main(args):
    if args == ["-"]:
        try:
            form = canonical(sys.stdin.buffer.read())
        except Refused as refused:
            print("refused:", refused)
            return 1
        print(form.decode("utf-8"))
        print(sha256(form))
        return 0
    paths = [pathlib.Path(a) for a in args] or sorted(pathlib.Path(__file__).parent.glob("*.jsonl"))
    counts = [check(path) for path in paths]
    total, good = sum(c[0] for c in counts), sum(c[1] for c in counts)
    print("%d of %d vectors hold" % (good, total))
    return 0 if total and good == total else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
