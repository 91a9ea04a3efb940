package modeltest

import (
	"regexp"
	"strings"
)

// fix is a real repair of something that a repository itself calls open. It is found by its phrase
// wherever it stands, and made only when the code is exactly the one that it is for.
type fix struct {
	phrase string // in the comment that names the open point
	title  string
	edits  [][2]string
}

func fixes() []fix {
	return []fix{
		{
			phrase: "One package too many when the need is an exact multiple",
			title:  "Order no package too many",
			edits: [][2]string{{
				"            # One package too many when the need is an exact multiple of the pack.\n            orders.append(Order(item, needed // item.pack + 1))\n",
				"            packages = -(-needed // item.pack)  # rounded up\n            orders.append(Order(item, packages))\n",
			}},
		},
		{
			phrase: "a quantity that is no number ends in a bare ValueError",
			title:  "Name the line of a wrong number",
			edits: [][2]string{
				{
					"    for row in rows:\n        # TODO: a quantity that is no number ends in a bare ValueError without the line.\n        yield Item(\n",
					"    for line, row in enumerate(rows, start=2):\n        try:\n            item = _item(row)\n        except ValueError as error:\n            raise FormatError(f\"line {line}: {error}\") from error\n        yield item\n\n\ndef _item(row: dict[str, str]) -> Item:\n    return Item(\n",
				},
				{
					"            sku=row[\"sku\"].strip(),\n            name=row[\"name\"].strip(),\n            quantity=int(row[\"quantity\"]),\n            minimum=int(row[\"minimum\"]),\n            target=int(row[\"target\"]),\n            pack=int(row.get(\"pack\") or 1),\n            supplier=(row.get(\"supplier\") or \"\").strip(),\n        )\n",
					"        sku=row[\"sku\"].strip(),\n        name=row[\"name\"].strip(),\n        quantity=int(row[\"quantity\"]),\n        minimum=int(row[\"minimum\"]),\n        target=int(row[\"target\"]),\n        pack=int(row.get(\"pack\") or 1),\n        supplier=(row.get(\"supplier\") or \"\").strip(),\n    )\n",
				},
			},
		},
		{
			phrase: "a target with a title",
			title:  "Leave the title out of a link's target",
			edits: [][2]string{
				{
					"// inline matches [text](target) and ![text](target).\n//\n// TODO: a target with a title, [a](b.md \"Title\"), takes the title along.\n",
					"// inline matches [text](target) and ![text](target), also with a title: [a](b.md \"Title\").\n",
				},
				{
					"\t\t\tlinks = append(links, Link{Line: i + 1, Text: m[1], Target: strings.TrimSpace(m[2])})\n",
					"\t\t\ttarget, _, _ := strings.Cut(strings.TrimSpace(m[2]), \" \") // a title follows after a space\n\t\t\tlinks = append(links, Link{Line: i + 1, Text: m[1], Target: target})\n",
				},
			},
		},
		{
			phrase: "decide which separators we take for thousands",
			title:  "Read amounts with commas for thousands",
			edits: [][2]string{
				{
					" * Reads \"12.50 EUR\", \"12,50 EUR\" or \"12 EUR\".\n *\n * TODO: \"1,250.00 EUR\" is refused; decide which separators we take for thousands.\n",
					" * Reads \"12.50 EUR\", \"12,50 EUR\", \"12 EUR\" or, with commas for thousands, \"1,250.00 EUR\".\n",
				},
				{
					"  const match = /^(\\d+)(?:[.,](\\d{1,2}))?\\s+([A-Z]{3})$/.exec(text.trim());\n",
					"  const match = /^(\\d{1,3}(?:,\\d{3})+|\\d+)(?:[.,](\\d{1,2}))?\\s+([A-Z]{3})$/.exec(text.trim());\n",
				},
				{
					"  const whole = Number(match[1]);\n",
					"  const whole = Number(match[1]!.replaceAll(\",\", \"\"));\n",
				},
			},
		},
	}
}

// fixPhrases is a pattern that finds all of them.
func fixPhrases() string {
	var list []string
	for _, f := range fixes() {
		list = append(list, regexp.QuoteMeta(f.phrase))
	}
	return strings.Join(list, "|")
}

// readFix reads the file of the first open point that can be repaired.
func (d *demo) readFix() []Call {
	for _, f := range fixes() {
		for _, m := range d.todos {
			if strings.Contains(m.text, f.phrase) && !strings.HasSuffix(m.path, ".md") {
				d.fix, d.fixPath = &f, m.path
				return []Call{CallJSON("read", map[string]any{"path": m.path})}
			}
		}
	}
	return nil
}

// seeFix drops a repair for which the code is another one.
func (d *demo) seeFix(results []string) {
	text := withoutNotes(last(results))
	for _, e := range d.fix.edits {
		if strings.Count(text, e[0]) != 1 {
			d.fix = nil
			return
		}
	}
}

func (d *demo) applyFix() []Call {
	if d.fix == nil {
		return nil
	}
	var edits []any
	for _, e := range d.fix.edits {
		edits = append(edits, map[string]any{"oldText": e[0], "newText": e[1]})
	}
	return []Call{CallJSON("edit", map[string]any{"path": d.fixPath, "edits": edits})}
}

func (d *demo) seeApplied(results []string) {
	if d.failedCall("The repair", last(results)) {
		d.fix = nil
		return
	}
	d.done = append(d.done, "`"+d.fixPath+"`: "+strings.ToLower(d.fix.title[:1])+d.fix.title[1:]+".")
}
