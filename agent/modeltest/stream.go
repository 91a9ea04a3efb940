package modeltest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// argumentPiece is how many bytes of a call's arguments come in one chunk.
const argumentPiece = 48

// stream writes one answer as server-sent events. After the client is gone it writes nothing more.
type stream struct {
	w     http.ResponseWriter
	ctx   context.Context //nolint:containedctx // lives as long as the one request it belongs to
	delay time.Duration
	model string
	sent  int
}

func (s *stream) send(reply Reply, promptTokens int) {
	s.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	s.w.WriteHeader(http.StatusOK)
	s.write(": keep-alive\n\n")
	if reply.Fault == Hang {
		<-s.ctx.Done()
		return
	}
	for reply.Fault == Comments {
		if !s.wait(5 * time.Millisecond) {
			return
		}
		s.write(": keep-alive\n\n")
	}
	s.wait(reply.Pause)
	s.delta(map[string]any{"role": "assistant", "content": ""})
	words := pieces(reply.Text)
	for i, word := range words {
		if i == len(words)/2 && s.breaks(reply.Fault) {
			return
		}
		s.delta(map[string]any{"content": word})
		if !s.wait(s.delay) {
			return
		}
	}
	for i, call := range reply.Calls {
		s.call(i, call)
		if !s.wait(s.delay) {
			return
		}
	}
	if s.breaks(reply.Fault) {
		return
	}
	s.finish(reply, promptTokens)
}

// breaks makes the faults that come in the middle of a stream.
func (s *stream) breaks(f Fault) bool {
	switch f {
	case Broken:
		panic(http.ErrAbortHandler) // the server drops the connection
	case Truncated:
	case ErrorFrame:
		s.write(": keep-alive\n\ndata: {\"id\":\"x\",\"error\":{\"code\":502,\"message\":\"canary-provider-text\"},\"choices\":[]}\n\n")
	case Garbage:
		s.write("data: {\"choices\":[{canary-provider-text\n\n")
	default:
		return false
	}
	return true
}

func (s *stream) call(index int, call Call) {
	id := call.ID
	if id == "" {
		id = fmt.Sprintf("call_%d", index)
	}
	s.delta(map[string]any{"tool_calls": []any{map[string]any{
		"index": index, "id": id, "type": "function",
		"function": map[string]any{"name": call.Name, "arguments": ""},
	}}})
	for rest := call.Arguments; rest != ""; {
		n := min(argumentPiece, len(rest))
		for n < len(rest) && !utf8.RuneStart(rest[n]) {
			n++
		}
		s.delta(map[string]any{"tool_calls": []any{map[string]any{
			"index": index, "function": map[string]any{"arguments": rest[:n]},
		}}})
		rest = rest[n:]
	}
}

func (s *stream) finish(reply Reply, promptTokens int) {
	reason := reply.Finish
	if reason == "" {
		reason = "stop"
		if len(reply.Calls) > 0 {
			reason = "tool_calls"
		}
	}
	s.chunk([]any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": reason}}, nil)
	usage := map[string]any{
		"prompt_tokens": promptTokens, "completion_tokens": s.sent, "total_tokens": promptTokens + s.sent,
		"prompt_tokens_details": map[string]any{"cached_tokens": 0}, "cost": reply.Cost,
	}
	if reply.Unpriced {
		delete(usage, "cost")
	}
	s.chunk([]any{}, usage)
	s.write("data: [DONE]\n\n")
}

func (s *stream) delta(d map[string]any) {
	s.sent++
	s.chunk([]any{map[string]any{"index": 0, "delta": d, "finish_reason": nil}}, nil)
}

func (s *stream) chunk(choices []any, usage map[string]any) {
	c := map[string]any{"id": "chatcmpl-modeltest", "object": "chat.completion.chunk", "model": s.model, "choices": choices}
	if usage != nil {
		c["usage"] = usage
	}
	raw, err := json.Marshal(c)
	if err != nil {
		panic("modeltest: a chunk is not JSON: " + err.Error())
	}
	s.write("data: " + string(raw) + "\n\n")
}

func (s *stream) write(text string) {
	if s.ctx.Err() != nil {
		return
	}
	// A failed write means that the client is gone, which ctx says too.
	_, _ = s.w.Write([]byte(text))
	_ = http.NewResponseController(s.w).Flush()
}

// wait pauses and says that the client is still there.
func (s *stream) wait(d time.Duration) bool {
	if d <= 0 {
		return s.ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// pieces splits text after each word, so that joining them gives the text.
func pieces(text string) []string {
	var list []string
	for text != "" {
		i := strings.IndexAny(strings.TrimLeft(text, " \n"), " \n")
		if i < 0 {
			return append(list, text)
		}
		i += len(text) - len(strings.TrimLeft(text, " \n"))
		list, text = append(list, text[:i]), text[i:]
	}
	return list
}
