package modeltest

import (
	"path"
	"strings"
)

// language is what the demo knows of a programming language.
type language struct {
	name       string
	ext        string
	definition string // RE2 of lines that define something
	test       string // how its tests are usually run
	helpers    []helper
}

// helper is a small function that any program can use. file is without extension; code has %s where
// Go needs the name of the package.
type helper struct{ file, does, code string }

// languages in the order in which they win when several are there.
func languages() []*language {
	return []*language{goLanguage(), python(), typescript(), shellLanguage(), css()}
}

// languageOf picks the language with the most files; scripts and style sheets only win alone.
func languageOf(files []string) *language {
	var best *language
	most := 0
	for i, l := range languages() {
		n := 0
		for _, f := range files {
			if path.Ext(f) == l.ext {
				n++
			}
		}
		if n > most && (i < 3 || best == nil) {
			best, most = l, n
		}
	}
	return best
}

func goLanguage() *language {
	return &language{
		name: "Go", ext: ".go", definition: `^(func|type) `, test: "go test ./...",
		helpers: []helper{
			{"plural", "names a number of things", `package %s

import "strconv"

// plural names n things: "1 link", "3 links".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
`},
			{"shorten", "cuts text at whole characters", `package %s

// shorten returns at most limit characters of s; a cut is marked with an ellipsis.
func shorten(s string, limit int) string {
	runes := []rune(s)
	if len(runes) <= limit || limit < 1 {
		return s
	}
	return string(runes[:limit-1]) + "…"
}
`},
			{"unique", "drops repeated values", `package %s

// unique returns the values of list without repetitions, in their first order.
func unique(list []string) []string {
	seen := make(map[string]bool, len(list))
	var out []string
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}
`},
		},
	}
}

func python() *language {
	return &language{
		name: "Python", ext: ".py", definition: `^(def|class) `, test: "python3 -m unittest",
		helpers: []helper{
			{"plural", "names a number of things", `"""Names a number of things."""


def plural(count: int, noun: str) -> str:
    """Return "1 item" or "3 items"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
`},
			{"shorten", "cuts text at whole characters", `"""Cuts text for narrow columns."""


def shorten(text: str, limit: int) -> str:
    """Return at most limit characters; a cut is marked with an ellipsis."""
    if len(text) <= limit or limit < 1:
        return text
    return text[: limit - 1] + "…"
`},
			{"unique", "drops repeated values", `"""Drops repeated values."""

from __future__ import annotations

from collections.abc import Iterable


def unique(values: Iterable[str]) -> list[str]:
    """Return the values without repetitions, in their first order."""
    return list(dict.fromkeys(values))
`},
		},
	}
}

func typescript() *language {
	return &language{
		name: "TypeScript", ext: ".ts", definition: `^export `, test: "npm test",
		helpers: []helper{
			{"plural", "names a number of things", `/** Names a number of things: "1 label", "3 labels". */
export function plural(count: number, noun: string): string {
  return count === 1 ? ` + "`1 ${noun}` : `${count} ${noun}s`" + `;
}
`},
			{"shorten", "cuts text at whole characters", `/** At most ` + "`limit`" + ` characters of a text; a cut is marked with an ellipsis. */
export function shorten(text: string, limit: number): string {
  const characters = Array.from(text);
  if (characters.length <= limit || limit < 1) {
    return text;
  }
  return characters.slice(0, limit - 1).join("") + "…";
}
`},
			{"unique", "drops repeated values", `/** The values without repetitions, in their first order. */
export function unique<T>(values: readonly T[]): T[] {
  return [...new Set(values)];
}
`},
		},
	}
}

func shellLanguage() *language {
	return &language{
		name: "Shell", ext: ".sh", definition: `^[a-z_]+\(\)`,
		helpers: []helper{
			{"count-notes", "counts the Markdown files", `#!/bin/sh
# Counts the Markdown files of the repository.
set -eu

cd "$(dirname "$0")"
find . -name '*.md' -not -path './.git/*' | wc -l
`},
			{"list-todos", "lists open points", `#!/bin/sh
# Lists the open points of the repository, with file and line.
set -eu

cd "$(dirname "$0")"
grep -rn 'TODO' --include='*.md' . || echo "nothing is open"
`},
		},
	}
}

func css() *language {
	return &language{
		name: "CSS", ext: ".css", definition: `^[.#a-z][^{]*\{`,
		helpers: []helper{
			{"print", "is a style sheet for paper", `/* For paper: no colors, no navigation, links with their address. */
@media print {
  body { color: black; background: white; }
  nav { display: none; }
  a[href^="http"]::after { content: " (" attr(href) ")"; }
}
`},
			{"focus", "makes the keyboard's focus visible", `/* The element that has the keyboard's focus must be easy to see. */
:focus-visible { outline: 3px solid; outline-offset: 2px; }
`},
		},
	}
}

// languageCheck is a command that says whether what was written can be read at all, "" when policy
// seed has none for the language.
func (d *demo) languageCheck() string {
	s := d.sources()
	if d.language == nil || len(s) == 0 {
		return ""
	}
	switch dir := path.Dir(s[0]); d.language.name {
	case "Python":
		return "python3 -m compileall -q " + strings.TrimSuffix(dir, "/")
	case "Shell":
		return "bash -n " + s[0]
	}
	return ""
}
