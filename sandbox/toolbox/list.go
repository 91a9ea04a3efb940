package toolbox

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/toolbox/wire"
)

const (
	defaultListLimit   = 500
	defaultFindLimit   = 200
	defaultSearchLimit = 100
	maxEntries         = 5000
	maxContext         = 5
	maxLine            = 2200 // bytes of a line as the toolbox sends it: 500 characters and marks
	statValues         = 8    // of a wire.Stat in a list, as shape counts
	lineValues         = 6    // of a wire.SearchLine
)

// List returns one directory level, sorted by name.
func (c *Client) List(ctx context.Context, name string, limit int) (core.Listing, error) {
	limit = min(orDefault(limit, defaultListLimit), maxEntries)
	args := wire.ListArgs{Path: wire.Name(name), Limit: limit}
	req := request{verb: wire.VerbList, detail: orRepo(name), shape: shape{wire.MaxResult, statValues*limit + 16}}
	res, err := do[wire.ListArgs, wire.ListResult](ctx, c, req, args)
	if err != nil {
		return core.Listing{}, err
	}
	if len(res.Entries) > limit {
		return core.Listing{}, c.forged()
	}
	out := core.Listing{Entries: make([]core.FileStat, len(res.Entries)), More: res.More}
	for i, e := range res.Entries {
		stat, ok := fileStat(e)
		if !ok || i > 0 && stat.Path <= out.Entries[i-1].Path {
			return core.Listing{}, c.forged()
		}
		out.Entries[i] = stat
	}
	return out, nil
}

// Find returns the files whose path matches a glob.
func (c *Client) Find(ctx context.Context, q core.FindQuery) (core.FindResult, error) {
	if err := checkPattern("glob", q.Pattern); err != nil {
		return core.FindResult{}, err
	}
	limit := min(orDefault(q.Limit, defaultFindLimit), maxEntries)
	args := wire.FindArgs{Pattern: wire.Name(q.Pattern), Path: wire.Name(q.Path), Limit: limit}
	req := request{verb: wire.VerbFind, detail: orRepo(q.Path), shape: shape{wire.MaxResult, limit + 16}}
	res, err := do[wire.FindArgs, wire.FindResult](ctx, c, req, args)
	if err != nil {
		return core.FindResult{}, err
	}
	if len(res.Paths) > limit {
		return core.FindResult{}, c.forged()
	}
	out := core.FindResult{Paths: make([]string, len(res.Paths)), More: res.More}
	for i, p := range res.Paths {
		out.Paths[i] = string(p)
		if !validPath(string(p)) || i > 0 && out.Paths[i] <= out.Paths[i-1] {
			return core.FindResult{}, c.forged()
		}
	}
	return out, nil
}

// Search returns the lines that match a pattern.
func (c *Client) Search(ctx context.Context, q core.SearchQuery) (core.SearchResult, error) {
	if err := checkPattern("pattern", q.Pattern); err != nil {
		return core.SearchResult{}, err
	}
	if !q.Literal {
		if _, err := regexp.Compile(q.Pattern); err != nil {
			return core.SearchResult{}, core.Fail(core.Invalid, "pattern_invalid", fmt.Sprintf(
				"The pattern is not a valid RE2 expression: %s. Set literal to search for the text itself.", shown(strings.TrimPrefix(err.Error(), "error parsing regexp: "))))
		}
	}
	limit := min(orDefault(q.Limit, defaultSearchLimit), maxEntries)
	args := wire.SearchArgs{
		Pattern:    []byte(q.Pattern),
		Path:       wire.Name(q.Path),
		Glob:       wire.Name(q.Glob),
		IgnoreCase: q.IgnoreCase,
		Literal:    q.Literal,
		Context:    min(max(q.Context, 0), maxContext),
		Limit:      limit,
	}
	lines := limit * (1 + 2*args.Context)
	req := request{verb: wire.VerbSearch, detail: orRepo(q.Path), shape: shape{wire.MaxResult, lineValues*lines + 4*limit + 16}}
	res, err := do[wire.SearchArgs, wire.SearchResult](ctx, c, req, args)
	if err != nil {
		return core.SearchResult{}, err
	}
	out, ok := searchResult(args, res)
	if !ok {
		return core.SearchResult{}, c.forged()
	}
	return out, nil
}

// searchResult checks order and bounds, and makes the text valid UTF-8.
func searchResult(args wire.SearchArgs, res wire.SearchResult) (core.SearchResult, bool) {
	out := core.SearchResult{More: res.More, Ignored: res.Ignored}
	for i, f := range res.Files {
		if !validPath(string(f.Path)) || i > 0 && bytes.Compare(f.Path, res.Files[i-1].Path) <= 0 {
			return out, false
		}
		last := 0
		for _, l := range f.Lines {
			if l.Number <= last || len(l.Text) > maxLine || l.Length < 0 || l.Column < 0 || l.Column > l.Length+1 {
				return out, false
			}
			last = l.Number
			if l.Match {
				out.Matches++
			}
			out.Lines = append(out.Lines, core.SearchLine{
				Path:   string(f.Path),
				Number: l.Number,
				Text:   strings.ToValidUTF8(string(l.Text), "\uFFFD"),
				Match:  l.Match,
				Length: l.Length,
				Column: l.Column,
			})
		}
	}
	most := args.Limit * (1 + 2*args.Context)
	return out, out.Matches == res.Matches && out.Matches <= args.Limit && len(out.Lines) <= most
}

func checkPattern(what, pattern string) error {
	if pattern == "" || len(pattern) > 4096 || strings.ContainsRune(pattern, 0) {
		return core.Fail(core.Invalid, "pattern_invalid", "The "+what+" must have 1 to 4096 bytes and no NUL.")
	}
	return nil
}

func orRepo(name string) string {
	if name == "" {
		return "the repository"
	}
	return name
}
