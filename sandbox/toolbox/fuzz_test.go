package toolbox_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"path"
	"strings"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/toolbox"
	"agent-sandboxing/sandbox/toolbox/wire"
)

// script turns fuzzed bytes into frames, so that no checksum stands in the fuzzer's way: type, stream
// offset, length (2), payload. What is left at the end is noise.
func script(request uint32, text []byte) []byte {
	var out []byte
	for len(text) >= 4 {
		size := min(int(binary.BigEndian.Uint16(text[2:])), len(text)-4)
		f := wire.Frame{Type: wire.Type(text[0]), Stream: request + uint32(text[1]), Payload: text[4 : 4+size]}
		out = f.Append(out)
		text = text[4+size:]
	}
	return append(out, text...)
}

// unscript is what script makes the frames of an answer from.
func unscript(answer []byte) []byte {
	var out []byte
	for r := wire.NewReader(bytes.NewReader(answer)); ; {
		f, err := r.Next()
		if err != nil {
			return out
		}
		out = append(out, byte(f.Type), 0)
		out = binary.BigEndian.AppendUint16(out, uint16(len(f.Payload)))
		out = append(out, f.Payload...)
	}
}

// FuzzClient plays arbitrary frames as the toolbox's answer to each verb: no panic, no hang, nothing but
// an error with a code or an answer within what was asked for.
func FuzzClient(f *testing.F) {
	sha := strings.Repeat("a", 40)
	stat := wire.Stat{Path: wire.Name("a"), Kind: "file", Size: 3}
	for verb, seed := range map[string][]byte{
		"stat":       finished(1, nil, stat),
		"read":       finished(1, []byte("abc"), wire.ReadResult{EOF: true, Stat: stat}),
		"write":      finished(1, nil, stat),
		"list":       finished(1, nil, wire.ListResult{Entries: []wire.Stat{stat}}),
		"find":       finished(1, nil, wire.FindResult{Paths: wire.Names([]string{"a"})}),
		"search":     finished(1, nil, wire.SearchResult{Matches: 1, Files: []wire.SearchFile{{Path: wire.Name("a"), Lines: []wire.SearchLine{{Number: 1, Text: []byte("x"), Match: true}}}}}),
		"run":        finished(1, nil, wire.RunResult{Head: []byte("x"), Total: 1}),
		"state":      finished(1, nil, wire.GitState{Branch: "b", Head: sha, Base: sha}),
		"snapshot":   finished(1, []byte("PACK"), wire.SnapshotResult{TreeSHA: sha, BaseSHA: sha}),
		"checkpoint": finished(1, []byte("zstd"), wire.CheckpointResult{BaseSHA: sha}),
		"checkout":   finished(1, nil, struct{}{}),
		"restore":    wire.Frame{Type: wire.Credit, Stream: 1, Payload: wire.CreditPayload(1)}.Append(nil),
		"kill":       finished(1, nil, wire.KillResult{Killed: 1}),
		"ping":       wire.Frame{Type: wire.Finish, Stream: 1, Payload: []byte(`{"code":"not_found"}`)}.Append(nil),
	} {
		f.Add(verb, unscript(seed))
	}
	f.Fuzz(func(t *testing.T, verb string, text []byte) {
		// Zeros behind the answer end a half frame, noise the connection: no request waits for more.
		end := append(make([]byte, wire.MaxFrame), "noise"...)
		c, err := toolbox.Dial(t.Context(), liar(t, func(f wire.Frame) []byte { return append(script(f.Stream, text), end...) }),
			toolbox.Options{Heartbeat: time.Hour, Answer: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		err = callVerb(ctx, t, c, verb)
		if err != nil && core.CodeOf(err) == "internal" || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}

// callVerb asks for little, and checks that no more is handed on.
func callVerb(ctx context.Context, t *testing.T, c *toolbox.Client, verb string) error {
	t.Helper()
	inside := func(p string) {
		if p == "" || path.Clean(p) != p || strings.HasPrefix(p, "..") || path.IsAbs(p) && !strings.HasPrefix(p, "/tmp") {
			t.Errorf("path %q", p)
		}
	}
	switch verb {
	case "read":
		data, err := c.Read(ctx, "a", 0, 100)
		if err == nil {
			inside(data.Path)
		}
		if len(data.Data) > 100 {
			t.Errorf("%d bytes", len(data.Data))
		}
		return err
	case "write":
		_, err := c.Write(ctx, core.WriteFile{Path: "a", Data: []byte("x")})
		return err
	case "list":
		l, err := c.List(ctx, "", 10)
		for _, e := range l.Entries {
			inside(e.Path)
		}
		if len(l.Entries) > 10 {
			t.Errorf("%d entries", len(l.Entries))
		}
		return err
	case "find":
		found, err := c.Find(ctx, core.FindQuery{Pattern: "*", Limit: 10})
		for _, p := range found.Paths {
			inside(p)
		}
		if len(found.Paths) > 10 {
			t.Errorf("%d paths", len(found.Paths))
		}
		return err
	case "search":
		hits, err := c.Search(ctx, core.SearchQuery{Pattern: "x", Limit: 10})
		for _, l := range hits.Lines {
			inside(l.Path)
		}
		if len(hits.Lines) > 10 {
			t.Errorf("%d lines", len(hits.Lines))
		}
		return err
	case "run":
		res, err := c.Run(ctx, core.Command{Shell: "x", KeepHead: 10, KeepTail: 10})
		if len(res.Head) > 10 || len(res.Tail) > 10 {
			t.Errorf("%d and %d bytes", len(res.Head), len(res.Tail))
		}
		return err
	case "state":
		_, err := c.GitState(ctx)
		return err
	case "snapshot":
		_, err := c.Snapshot(ctx, io.Discard)
		return err
	case "checkpoint":
		info, err := c.Checkpoint(ctx, io.Discard, 100)
		if info.Bytes > 100 {
			t.Errorf("%d bytes", info.Bytes)
		}
		return err
	case "checkout":
		return c.Checkout(ctx, core.Checkout{}, bytes.NewReader(make([]byte, 1000)))
	case "restore":
		return c.Restore(ctx, core.CheckpointInfo{}, bytes.NewReader(make([]byte, 1000)))
	case "kill":
		_, err := c.KillAll(ctx)
		return err
	case "ping":
		return c.Ping(ctx)
	default:
		st, err := c.Stat(ctx, "a")
		if err == nil {
			inside(st.Path)
		}
		return err
	}
}
