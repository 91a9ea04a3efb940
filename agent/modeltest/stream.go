package modeltest

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
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
	s.reasoning(reply.Reasoning)
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
		s.call(i, call, reply.Quirk)
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

// reasoning comes in pieces that make one block, whose signature comes last.
func (s *stream) reasoning(text string) {
	if text == "" {
		return
	}
	block := func(fields map[string]any) map[string]any {
		fields["type"], fields["index"], fields["format"] = "reasoning.text", 0, "modeltest-v1"
		return fields
	}
	for _, word := range pieces(text) {
		s.delta(map[string]any{"reasoning": word, "reasoning_details": []any{block(map[string]any{"text": word})}})
	}
	s.delta(map[string]any{"reasoning_details": []any{block(map[string]any{"text": "", "signature": Signature(text)})}})
}

// Signature is what a block of reasoning is signed with. A server that gets the block back with
// another text or signature refuses it.
func Signature(text string) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(text))) }

func callID(index int, call Call) string {
	if call.ID != "" {
		return call.ID
	}
	return fmt.Sprintf("call_%d", index)
}

func (s *stream) call(index int, call Call, quirk Quirk) {
	piece := func(c map[string]any) {
		if quirk != NoIndex {
			c["index"] = index
		}
		s.delta(map[string]any{"tool_calls": []any{c}})
	}
	function := map[string]any{"name": call.Name, "arguments": ""}
	rest := call.Arguments
	if quirk == ObjectArguments && json.Valid([]byte(rest)) {
		function["arguments"], rest = json.RawMessage(rest), ""
	}
	piece(map[string]any{"id": callID(index, call), "type": "function", "function": function})
	for rest != "" {
		n := min(argumentPiece, len(rest))
		for n < len(rest) && !utf8.RuneStart(rest[n]) {
			n++
		}
		piece(map[string]any{"function": map[string]any{"arguments": rest[:n]}})
		rest = rest[n:]
	}
}

func (s *stream) finish(reply Reply, promptTokens int) {
	s.chunk([]any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": finishReason(reply)}}, nil)
	if u := s.usage(reply, promptTokens); u != nil {
		s.chunk([]any{}, u)
	}
	if reply.Quirk != NoDone {
		s.write("data: [DONE]\n\n")
	}
}

func finishReason(reply Reply) string {
	switch {
	case reply.Finish != "":
		return reply.Finish
	case len(reply.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func (s *stream) usage(reply Reply, promptTokens int) map[string]any {
	if reply.Quirk == NoUsage {
		return nil
	}
	if reply.PromptTokens > 0 {
		promptTokens = reply.PromptTokens
	}
	u := map[string]any{
		"prompt_tokens": promptTokens, "completion_tokens": s.sent, "total_tokens": promptTokens + s.sent,
		"prompt_tokens_details": map[string]any{"cached_tokens": 0}, "cost": reply.Cost,
	}
	if reply.Quirk == NoCost {
		delete(u, "cost")
	}
	return u
}

// sendWhole answers as a server does that cannot stream.
func (s *stream) sendWhole(reply Reply, promptTokens int) {
	message := map[string]any{"role": "assistant", "content": reply.Text}
	var calls []any
	for i, call := range reply.Calls {
		calls = append(calls, map[string]any{
			"id": callID(i, call), "type": "function",
			"function": map[string]any{"name": call.Name, "arguments": call.Arguments},
		})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	s.sent = len(reply.Text) / 4
	writeJSON(s.w, http.StatusOK, map[string]any{
		"id": "chatcmpl-modeltest", "object": "chat.completion", "model": s.model,
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finishReason(reply)}},
		"usage":   s.usage(reply, promptTokens),
	})
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
