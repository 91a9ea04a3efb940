package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"regexp"
	"unicode/utf8"

	"agent-sandboxing/sandbox/toolbox/wire"
)

const (
	binaryProbe   = 8 << 10  // a NUL in so many bytes makes a file binary
	maxSearchFile = 64 << 20 // larger files are passed over
	maxSearchLine = 16 << 20 // of a longer line, the rest is not looked at
	maxLineRunes  = 500      // of a line in the answer
)

// Search returns the lines of files that match a pattern, with their neighbours.
func (f *Files) Search(ctx context.Context, a wire.SearchArgs) (wire.SearchResult, error) {
	out := wire.SearchResult{Files: []wire.SearchFile{}}
	expr := string(a.Pattern)
	if a.Literal {
		expr = regexp.QuoteMeta(expr)
	}
	if a.IgnoreCase {
		expr = "(?i)" + expr
	}
	pattern, err := regexp.Compile(expr)
	if err != nil {
		return out, wire.Fail(wire.BadRequest, string(a.Pattern))
	}
	var only *glob
	if len(a.Glob) > 0 {
		g, err := parseGlob(string(a.Glob))
		if err != nil {
			return out, err
		}
		only = &g
	}
	p, err := f.existing(a.Path, true)
	if err != nil {
		return out, err
	}
	defer p.close()
	limited, cancel := context.WithTimeout(ctx, f.lookFor)
	defer cancel()
	s := &search{args: a, pattern: pattern, out: &out}
	if !p.info.IsDir() {
		err := s.file(limited, p)
		out.More = out.More || outOfTime(ctx, err)
		if errors.Is(err, errStop) || outOfTime(ctx, err) {
			err = nil
		}
		return out, err
	}
	w := p.walker()
	w.visit = func(rel string, e fs.DirEntry) error {
		if !e.Type().IsRegular() || only != nil && !only.match(rel, from(p.rel, rel)) {
			return nil
		}
		info, err := p.root.Lstat(rel)
		if err != nil {
			return nil // gone meanwhile
		}
		err = s.file(limited, place{root: p.root, prefix: p.prefix, rel: rel, info: info})
		if _, refused := errors.AsType[*wire.Error](err); refused {
			return nil // unreadable, or swapped for something else
		}
		return err
	}
	err = w.lookThrough(ctx, limited, p.rel)
	out.Ignored = w.ignored
	out.More = out.More || w.more
	return out, err
}

// search is the state over all files.
type search struct {
	args    wire.SearchArgs
	pattern *regexp.Regexp
	out     *wire.SearchResult
	size    int // bytes of the answer so far
}

// file adds the lines of one file; errStop when the answer is full.
func (s *search) file(ctx context.Context, p place) error {
	file, err := p.open()
	if err != nil {
		return err
	}
	defer file.Close()
	if p.info.Size() > maxSearchFile {
		return nil
	}
	lines := bufio.NewReaderSize(io.LimitReader(file, maxSearchFile), 64<<10)
	if head, _ := lines.Peek(binaryProbe); bytes.IndexByte(head, 0) >= 0 {
		return nil
	}
	found := &matches{search: s, path: path.Join(p.prefix, p.rel)}
	err = found.scan(ctx, lines)
	if len(found.lines) > 0 {
		s.size += encodedSize(wire.Name(found.path))
		s.out.Files = append(s.out.Files, wire.SearchFile{Path: wire.Name(found.path), Lines: found.lines})
	}
	return err
}

// matches collects the lines of one file.
type matches struct {
	*search
	path   string
	lines  []wire.SearchLine
	before []wire.SearchLine // context that a next match would need
	after  int               // context lines that the last match still wants
}

func (m *matches) scan(ctx context.Context, r *bufio.Reader) error {
	for number := 1; ; number++ {
		if number%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line, err := readLine(r)
		if len(line) == 0 && err != nil {
			return nil // a read error ends the file as its end does
		}
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		if err := m.line(number, line); err != nil {
			return err
		}
	}
}

func (m *matches) line(number int, line []byte) error {
	at := m.pattern.FindIndex(line)
	switch {
	case at != nil:
		if m.out.Matches >= m.args.Limit || m.size > maxAnswer {
			m.out.More = true
			return errStop
		}
		m.out.Matches++
		for _, b := range m.before {
			m.add(b)
		}
		m.before, m.after = nil, m.args.Context
		entry := cutLine(number, line, at[0])
		entry.Match = true
		m.add(entry)
	case m.after > 0:
		m.after--
		m.add(cutLine(number, line, 0))
	case m.args.Context > 0:
		if m.before = append(m.before, cutLine(number, line, 0)); len(m.before) > m.args.Context {
			m.before = m.before[1:]
		}
	}
	return nil
}

func (m *matches) add(l wire.SearchLine) {
	m.size += encodedSize(l.Text)
	m.lines = append(m.lines, l)
}

// readLine returns a line with its newline, and at most the first maxSearchLine bytes of it.
func readLine(r *bufio.Reader) ([]byte, error) {
	part, err := r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return part, err
	}
	line := bytes.Clone(part)
	for errors.Is(err, bufio.ErrBufferFull) {
		part, err = r.ReadSlice('\n')
		line = append(line, part[:min(len(part), maxSearchLine-len(line))]...)
	}
	return line, err
}

// cutLine keeps maxLineRunes characters of a line, of a long one those around the match, and then says
// how long the line is and where the match begins.
func cutLine(number int, line []byte, match int) wire.SearchLine {
	length := utf8.RuneCount(line)
	if length <= maxLineRunes {
		return wire.SearchLine{Number: number, Text: bytes.Clone(line)}
	}
	column := utf8.RuneCount(line[:match])
	start := 0
	if column > maxLineRunes/2 {
		start = match
		for range maxLineRunes / 4 {
			_, size := utf8.DecodeLastRune(line[:start])
			start -= size
		}
	}
	end := start
	for n := 0; n < maxLineRunes && end < len(line); n++ {
		_, size := utf8.DecodeRune(line[end:])
		end += size
	}
	var text []byte
	if start > 0 {
		text = append(text, "…"...)
	}
	text = append(text, line[start:end]...)
	if end < len(line) {
		text = append(text, "…"...)
	}
	return wire.SearchLine{Number: number, Text: text, Length: length, Column: column + 1}
}
