package toolbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/toolbox"
	"agent-sandboxing/sandbox/toolbox/wire"
)

// liar is a toolbox that shakes hands and then answers every request with what answer returns, its
// frames sealed.
func liar(t testing.TB, answer func(request wire.Frame) []byte) net.Conn {
	t.Helper()
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		frames := wire.NewReader(theirs)
		for {
			f, err := frames.Next()
			if err != nil {
				return
			}
			var out []byte
			switch f.Type {
			case wire.Hello:
				nonce, _, _ := wire.ParseHello(f.Payload)
				frames.Seal = wire.SealOf(nonce)
				out = wire.Frame{Type: wire.HelloOK, Payload: f.Payload}.Append(nil)
			case wire.Request:
				out = sealed(frames.Seal, answer(f))
			default:
				continue
			}
			if _, err := theirs.Write(out); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { _ = ours.Close() })
	return ours
}

// sealed seals the frames that a stream begins with, and leaves the rest as it is.
func sealed(seal wire.Seal, stream []byte) []byte {
	var out []byte
	for r := wire.NewReader(bytes.NewReader(stream)); ; {
		f, err := r.Next()
		if err != nil {
			return append(out, stream[len(out):]...)
		}
		out = seal.Append(out, f)
	}
}

func dialLiar(t testing.TB, answer func(wire.Frame) []byte) *toolbox.Client {
	t.Helper()
	c, err := toolbox.Dial(t.Context(), liar(t, answer), toolbox.Options{Heartbeat: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// finished is a whole answer: data, result and the end.
func finished(stream uint32, data []byte, result any) []byte {
	var out []byte
	for len(data) > 0 {
		n := min(len(data), wire.MaxPayload)
		out = wire.Frame{Type: wire.Data, Stream: stream, Payload: data[:n]}.Append(out)
		data = data[n:]
	}
	text, err := json.Marshal(result)
	if err != nil {
		panic(err)
	}
	out = wire.Frame{Type: wire.Result, Stream: stream, Payload: text}.Append(out)
	return wire.Frame{Type: wire.Finish, Stream: stream}.Append(out)
}

func TestClient_ForgedFramesEndTheConnection(t *testing.T) {
	t.Parallel()
	one := func(typ wire.Type, stream uint32, payload []byte) func(wire.Frame) []byte {
		return func(f wire.Frame) []byte {
			return wire.Frame{Type: typ, Stream: f.Stream + stream, Payload: payload}.Append(nil)
		}
	}
	many := func(typ wire.Type, n int) func(wire.Frame) []byte {
		return func(f wire.Frame) []byte {
			var out []byte
			for range n {
				out = wire.Frame{Type: typ, Stream: f.Stream, Payload: make([]byte, wire.MaxPayload)}.Append(out)
			}
			return out
		}
	}
	for name, answer := range map[string]func(wire.Frame) []byte{
		"noise":                    func(wire.Frame) []byte { return bytes.Repeat([]byte("noise"), 1000) },
		"bad checksum":             func(f wire.Frame) []byte { b := finished(f.Stream, nil, struct{}{}); b[9] ^= 1; return b },
		"a stream never opened":    one(wire.Finish, 1, nil),
		"stream zero":              func(wire.Frame) []byte { return wire.Frame{Type: wire.Finish}.Append(nil) },
		"a request":                one(wire.Request, 0, nil),
		"a hello":                  one(wire.HelloOK, 0, nil),
		"an unknown type":          one(99, 0, nil),
		"an endless result":        many(wire.Result, wire.MaxResult/wire.MaxPayload+2),
		"credit of the wrong size": one(wire.Credit, 0, []byte{1}),
		"credit beyond the window": one(wire.Credit, 0, wire.CreditPayload(wire.Window+1)),
		"no result":                one(wire.Finish, 0, nil),
		"a result that is no JSON": func(f wire.Frame) []byte {
			return append(one(wire.Result, 0, []byte("{"))(f), one(wire.Finish, 0, nil)(f)...)
		},
		"data where none belongs": func(f wire.Frame) []byte {
			return finished(f.Stream, []byte("x"), wire.Stat{Path: wire.Name("x"), Kind: "file"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := dialLiar(t, answer)
			if _, err := c.Stat(t.Context(), "x"); core.CodeOf(err) != "sandbox_lost" {
				t.Errorf("err = %v, want sandbox_lost", err)
			}
			<-c.Done()
		})
	}
}

func TestClient_DataBeyondTheCreditEndsTheConnection(t *testing.T) {
	t.Parallel()
	c := dialLiar(t, func(f wire.Frame) []byte {
		var out []byte
		for range wire.Window/wire.MaxPayload + 2 {
			out = wire.Frame{Type: wire.Data, Stream: f.Stream, Payload: make([]byte, wire.MaxPayload)}.Append(out)
		}
		return out
	})
	slow := &gatedWriter{open: make(chan struct{})}
	ended := make(chan error, 1)
	go func() {
		_, err := c.Snapshot(t.Context(), slow)
		ended <- err
	}()
	<-c.Done() // while nobody reads
	close(slow.open)
	if err := <-ended; core.CodeOf(err) != "sandbox_lost" {
		t.Errorf("err = %v, want sandbox_lost", err)
	}
}

func TestClient_ForgedAnswersEndTheConnection(t *testing.T) {
	t.Parallel()
	file := wire.Stat{Path: wire.Name("f"), Kind: "file", Size: 3}
	with := func(change func(*wire.Stat)) wire.Stat { s := file; change(&s); return s }
	stat := func(c *toolbox.Client) error { _, err := c.Stat(context.Background(), "f"); return err }
	read := func(c *toolbox.Client) error { _, err := c.Read(context.Background(), "f", 0, 10); return err }
	write := func(c *toolbox.Client) error {
		_, err := c.Write(context.Background(), core.WriteFile{Path: "f", Data: []byte("abc")})
		return err
	}
	list := func(c *toolbox.Client) error { _, err := c.List(context.Background(), "", 2); return err }
	find := func(c *toolbox.Client) error {
		_, err := c.Find(context.Background(), core.FindQuery{Pattern: "*", Limit: 2})
		return err
	}
	search := func(c *toolbox.Client) error {
		_, err := c.Search(context.Background(), core.SearchQuery{Pattern: "x", Limit: 2})
		return err
	}
	run := func(c *toolbox.Client) error {
		_, err := c.Run(context.Background(), core.Command{Shell: "x", KeepHead: 4, KeepTail: 4})
		return err
	}
	state := func(c *toolbox.Client) error { _, err := c.GitState(context.Background()); return err }
	snapshot := func(c *toolbox.Client) error { _, err := c.Snapshot(context.Background(), io.Discard); return err }
	checkpoint := func(c *toolbox.Client) error {
		_, err := c.Checkpoint(context.Background(), io.Discard, 10)
		return err
	}
	sha := strings.Repeat("a", 40)
	line := func(n int, text string) wire.SearchLine {
		return wire.SearchLine{Number: n, Text: []byte(text), Match: true}
	}
	for name, c := range map[string]struct {
		call   func(*toolbox.Client) error
		data   string
		result any
	}{
		"path above":                 {stat, "", with(func(s *wire.Stat) { s.Path = wire.Name("../f") })},
		"path outside":               {stat, "", with(func(s *wire.Stat) { s.Path = wire.Name("/etc/passwd") })},
		"path that is not clean":     {stat, "", with(func(s *wire.Stat) { s.Path = wire.Name("a//f") })},
		"path with NUL":              {stat, "", with(func(s *wire.Stat) { s.Path = wire.Name("a\x00") })},
		"endless path":               {stat, "", with(func(s *wire.Stat) { s.Path = bytes.Repeat([]byte("x"), 10_000) })},
		"unknown kind":               {stat, "", with(func(s *wire.Stat) { s.Kind = "socket" })},
		"negative size":              {stat, "", with(func(s *wire.Stat) { s.Size = -1 })},
		"hash that is none":          {stat, "", with(func(s *wire.Stat) { s.SHA256 = "<b>" })},
		"number for a struct":        {stat, "", 7},
		"more than was asked for":    {read, "01234567890", wire.ReadResult{Stat: file, EOF: true}},
		"hash of other bytes":        {read, "abc", wire.ReadResult{Stat: with(func(s *wire.Stat) { s.SHA256 = strings.Repeat("0", 64) }), EOF: true}},
		"folder that was read":       {read, "abc", wire.ReadResult{Stat: with(func(s *wire.Stat) { s.Kind = "dir" })}},
		"wrote other bytes":          {write, "", with(func(s *wire.Stat) { s.SHA256 = strings.Repeat("0", 64) })},
		"too many entries":           {list, "", wire.ListResult{Entries: []wire.Stat{{Path: wire.Name("a"), Kind: "file"}, {Path: wire.Name("b"), Kind: "file"}, {Path: wire.Name("c"), Kind: "file"}}}},
		"entries out of order":       {list, "", wire.ListResult{Entries: []wire.Stat{{Path: wire.Name("b"), Kind: "file"}, {Path: wire.Name("a"), Kind: "file"}}}},
		"the same entry twice":       {list, "", wire.ListResult{Entries: []wire.Stat{file, file}}},
		"too many paths":             {find, "", wire.FindResult{Paths: wire.Names([]string{"a", "b", "c"})}},
		"paths out of order":         {find, "", wire.FindResult{Paths: wire.Names([]string{"b", "a"})}},
		"more matches than asked":    {search, "", wire.SearchResult{Matches: 3, Files: []wire.SearchFile{{Path: wire.Name("a"), Lines: []wire.SearchLine{line(1, ""), line(2, ""), line(3, "")}}}}},
		"matches miscounted":         {search, "", wire.SearchResult{Matches: 2, Files: []wire.SearchFile{{Path: wire.Name("a"), Lines: []wire.SearchLine{line(1, "")}}}}},
		"lines out of order":         {search, "", wire.SearchResult{Matches: 2, Files: []wire.SearchFile{{Path: wire.Name("a"), Lines: []wire.SearchLine{line(2, ""), line(1, "")}}}}},
		"an endless line":            {search, "", wire.SearchResult{Matches: 1, Files: []wire.SearchFile{{Path: wire.Name("a"), Lines: []wire.SearchLine{line(1, strings.Repeat("x", 10_000))}}}}},
		"context that was not asked": {search, "", wire.SearchResult{Files: []wire.SearchFile{{Path: wire.Name("a"), Lines: []wire.SearchLine{{Number: 1}, {Number: 2}, {Number: 3}}}}}},
		"the same file twice":        {search, "", wire.SearchResult{Files: []wire.SearchFile{{Path: wire.Name("a")}, {Path: wire.Name("a")}}}},
		"a line of negative size":    {search, "", wire.SearchResult{Matches: 1, Files: []wire.SearchFile{{Path: wire.Name("a"), Lines: []wire.SearchLine{{Number: 1, Match: true, Length: -1}}}}}},
		"head too long":              {run, "", wire.RunResult{Head: []byte("12345"), Total: 5}},
		"total too small":            {run, "", wire.RunResult{Head: []byte("123"), Total: 2}},
		"exit out of range":          {run, "", wire.RunResult{Exit: 256}},
		"signal with markup":         {run, "", wire.RunResult{Signal: "<script>"}},
		"branch with a newline":      {state, "", wire.GitState{Branch: "a\nb", Base: sha}},
		"head that is no hash":       {state, "", wire.GitState{Head: "HEAD", Base: sha}},
		"base that is no hash":       {state, "", wire.GitState{Branch: "b", Base: "base"}},
		"tree that is no hash":       {snapshot, "", wire.SnapshotResult{TreeSHA: "--upload-pack=x", BaseSHA: sha}},
		"nested above":               {snapshot, "", wire.SnapshotResult{TreeSHA: sha, BaseSHA: sha, Nested: wire.Names([]string{"../x"})}},
		"archive over the limit":     {checkpoint, "01234567890", wire.CheckpointResult{BaseSHA: sha}},
		"deleted outside":            {checkpoint, "", wire.CheckpointResult{BaseSHA: sha, Deleted: wire.Names([]string{"/etc"})}},
		"negative files":             {checkpoint, "", wire.CheckpointResult{BaseSHA: sha, Files: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := dialLiar(t, func(f wire.Frame) []byte { return finished(f.Stream, []byte(c.data), c.result) })
			if err := c.call(client); core.CodeOf(err) != "sandbox_lost" {
				t.Errorf("err = %v, want sandbox_lost", err)
			}
			<-client.Done()
		})
	}
}

func TestClient_WordsErrorsItself(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]string{
		`{"code":"not_found"}`:                "not_found: f\x1b[0m",
		`{"code":"<script>","detail":"aGk="}`: "toolbox_failed",
		`{"code":"internal"}`:                 "toolbox_failed",
		`garbage`:                             "toolbox_failed",
		`{"code":"path_outside_workspace","detail":"G1szMQ=="}`: "path_outside_workspace",
	} {
		c := dialLiar(t, func(f wire.Frame) []byte {
			return wire.Frame{Type: wire.Finish, Stream: f.Stream, Payload: []byte(payload)}.Append(nil)
		})
		_, err := c.Stat(t.Context(), "f\x1b[0m")
		code, _, _ := strings.Cut(want, ":")
		if core.CodeOf(err) != code || strings.ContainsAny(core.MessageOf(err), "\x1b<") || !strings.Contains(core.MessageOf(err), `f\x1b[0m`) {
			t.Errorf("%s: %v", payload, err)
		}
	}
}

func TestDial_SilentToolboxIsLost(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, theirs) }()
	_, err := toolbox.Dial(t.Context(), ours, toolbox.Options{HelloTimeout: 20 * time.Millisecond})
	if core.CodeOf(err) != "sandbox_lost" {
		t.Errorf("err = %v, want sandbox_lost", err)
	}
	if _, err := ours.Write([]byte("x")); err == nil {
		t.Error("the stream was left open")
	}
}

func TestDial_NoiseIsNoAnswer(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, theirs) }()
	go func() {
		old := wire.Frame{Type: wire.HelloOK, Payload: make([]byte, wire.NonceSize+2)}.Append(nil)
		for {
			if _, err := theirs.Write(old); err != nil {
				return
			}
		}
	}()
	_, err := toolbox.Dial(t.Context(), ours, toolbox.Options{HelloTimeout: 50 * time.Millisecond})
	if core.CodeOf(err) != "sandbox_lost" {
		t.Errorf("err = %v, want sandbox_lost", err)
	}
}

func TestDial_OtherVersionIsOutdated(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	go func() {
		f, err := wire.NewReader(theirs).Next()
		if err != nil {
			return
		}
		nonce, _, _ := wire.ParseHello(f.Payload)
		_, _ = theirs.Write(wire.Frame{Type: wire.HelloOK, Payload: wire.HelloPayload(nonce, wire.Version+1)}.Append([]byte("old output")))
	}()
	_, err := toolbox.Dial(t.Context(), ours, toolbox.Options{})
	if core.CodeOf(err) != "toolbox_outdated" {
		t.Errorf("err = %v, want toolbox_outdated", err)
	}
}

func TestDial_CancelIsTheContexts(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, theirs) }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := toolbox.Dial(ctx, ours, toolbox.Options{}); err == nil || ctx.Err() == nil || core.CodeOf(err) == "sandbox_lost" {
		t.Errorf("err = %v, want the context's", err)
	}
}
