package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"agent-sandboxing/core"
)

// filtered is what the library gets to read of a stream.
func filtered(in io.Reader) ([]byte, error) {
	w := newWatch(Timeouts{Request: time.Hour}.orDefault(), func(error) {})
	defer w.end()
	f := newFilter(io.NopCloser(in), w)
	return io.ReadAll(f)
}

func TestFilter_BoundsWhatItTakes(t *testing.T) {
	t.Parallel()
	line := ": " + strings.Repeat("x", 1<<20) + "\n"
	tests := map[string]struct {
		lines  int
		ending string
		want   error
	}{
		"63 MiB":             {63, "", nil},
		"65 MiB":             {65, "", errTooLarge},
		"a line of 5 MiB":    {1, "data: " + strings.Repeat("y", 5<<20), errTooLarge},
		"a comment of 5 MiB": {1, ": " + strings.Repeat("y", 5<<20), errTooLarge},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			readers := make([]io.Reader, 0, test.lines+1)
			for range test.lines {
				readers = append(readers, strings.NewReader(line))
			}
			readers = append(readers, strings.NewReader(test.ending))
			if _, err := filtered(io.MultiReader(readers...)); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

func TestAnswer_BoundsWhatItTakes(t *testing.T) {
	t.Parallel()
	text := []byte(`{"choices":[{"delta":{"content":"` + strings.Repeat("x", 1<<20) + `"}}]}`)
	calls := func(n int) []byte {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf(`{"index":%d,"id":"same","function":{"name":"ls"}}`, i)
		}
		return []byte(`{"choices":[{"delta":{"tool_calls":[` + strings.Join(list, ",") + `]}}]}`)
	}
	tests := map[string]struct {
		lines [][]byte
		fails bool
	}{
		"2 MiB of text": {[][]byte{text, text}, false},
		"3 MiB of text": {[][]byte{text, text, text}, true},
		"256 calls":     {[][]byte{calls(256)}, false},
		"60,000 calls":  {[][]byte{calls(60_000)}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var a answer
			var err error
			for _, line := range test.lines {
				err = errors.Join(err, a.add(line, nil))
			}
			f, failed := errors.AsType[*failure](err)
			if failed != test.fails || failed && f.err.Code != core.CodeModelStreamError || len(a.calls) > maxCalls+1 {
				t.Errorf("%v with %d calls", err, len(a.calls))
			}
		})
	}
}

// Whatever comes in, and in whatever pieces: the same data lines go out, each once, each whole.
func FuzzFilter(f *testing.F) {
	for _, seed := range []string{
		"data: {\"a\":1}\n\n", "data:{\"error\":1}", ": c\r\ndata:  [DONE] \r\n\r\n", "event: x\nid: 1\nretry: 5\n", "\xff\xfedata: x\n", "data:\ndata: \n", "data: a\rb\n", "\ufeffdata: x\n\ufeffdata: y", strings.Repeat(":\n", 400) + "data: x\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		whole, err := filtered(strings.NewReader(stream))
		if err != nil {
			t.Fatal(err)
		}
		pieces, err := filtered(iotest.OneByteReader(strings.NewReader(stream)))
		if err != nil || !bytes.Equal(whole, pieces) {
			t.Fatalf("%q and in pieces %q, %v", whole, pieces, err)
		}
		var want []string
		for line := range strings.SplitSeq(strings.TrimPrefix(stream, "\ufeff"), "\n") {
			data, ok := strings.CutPrefix(strings.TrimSpace(line), "data:")
			if data = strings.TrimSpace(data); ok && data != "" {
				want = append(want, data)
			}
		}
		var got []string
		for line := range strings.Lines(string(whole)) {
			data, ok := strings.CutPrefix(line, "data: ")
			if !ok || !strings.HasSuffix(data, "\n") || strings.HasPrefix(data, `{"error"`) {
				t.Fatalf("the library gets %q", line)
			}
			if rest, ok := strings.CutPrefix(data, "{ "); ok {
				data = "{" + rest
			}
			got = append(got, strings.TrimSuffix(data, "\n"))
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%q gives %q, want %q", stream, got, want)
		}
	})
}

// Whatever a provider's data lines hold: an answer or a failure with a code, never both or neither.
func FuzzChunks(f *testing.F) {
	for _, seed := range []string{
		`{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"ls","arguments":"{"}}]}}]}` + "\n" + `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"b"},{"id":"a"},{}]},"finish_reason":"tool_calls"}]}`,
		`{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","text":"a"},null,{"type":"reasoning.text","text":7}]},"finish_reason":"length"}],"usage":{"prompt_tokens":1e99,"cost":{"total":"x"}}}`,
		`{"choices":[{"message":{"content":[{"text":"a"}],"refusal":"no"},"finish_reason":"stop"}],"error":null}`,
		`{"error":"x"}`, `{"object":"error","code":"429"}`, `{"choices":[{"error":{"code":429}}]}`, `[DONE]`, `null`, `[]`, `7`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, lines string) {
		var a answer
		var text strings.Builder
		for line := range strings.SplitSeq(lines, "\n") {
			if err := a.add([]byte(line), func(s string) { text.WriteString(s) }); err != nil {
				failed, ok := errors.AsType[*failure](err)
				if !ok || failed.err.Code == "" || failed.retry {
					t.Fatalf("%q fails with %#v", line, err)
				}
				return
			}
		}
		for _, replay := range []Replay{ReplayNone, ReplayDetails, ReplayContent} {
			got, err := a.response(replay)
			if (err == nil) != (got.Finish != "") || err != nil && core.CodeOf(err) != core.CodeModelStreamError {
				t.Fatalf("%+v, %v", got, err)
			}
			if err != nil {
				continue
			}
			if got.Text != text.String() {
				t.Errorf("text %q, heard %q", got.Text, text.String())
			}
			ids := map[string]bool{}
			for _, call := range got.Calls {
				if call.ID == "" || ids[call.ID] {
					t.Errorf("ids %+v", got.Calls)
				}
				ids[call.ID] = true
			}
			if u := got.Usage; u.CachedTokens < 0 || u.CachedTokens > u.PromptTokens || u.CompletionTokens < 0 || u.CostUSD != nil && *u.CostUSD < 0 {
				t.Errorf("usage %+v", u)
			}
			if r := got.Reasoning; r != nil && (replay == ReplayNone || !json.Valid(r)) {
				t.Errorf("replay %q", r)
			}
		}
	})
}
