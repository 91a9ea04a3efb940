// Package modeltest is a scripted model behind the OpenAI-compatible protocol: it stands in for a
// hosted model in tests and in the demo. It streams as real providers do, with keep-alive
// comments, tool calls in pieces and a usage record at the end, and fails on demand.
//
// It knows the protocol only; it shares no code with the client that it tests.
package modeltest

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Script decides what the model answers. It must be safe for concurrent use.
type Script interface {
	// Name is the model's name as it is reported.
	Name() string
	Reply(Request) Reply
}

// Request is what a client sent.
type Request struct {
	Model    string    `json:"model"`
	Messages []Message `json:"messages"`
	Tools    []Tool    `json:"tools"`
	Stream   bool      `json:"stream"`

	Authorization string                     `json:"-"`
	Body          map[string]json.RawMessage `json:"-"`
}

// Message is one message of a request.
type Message struct {
	Role       string `json:"role"`
	Content    string `json:"content"`
	ToolCallID string `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// UnmarshalJSON reads content that is text, text parts, or null.
func (m *Message) UnmarshalJSON(raw []byte) error {
	type plain Message
	wire := struct {
		*plain
		Content json.RawMessage `json:"content"`
	}{plain: (*plain)(m)}
	if err := json.Unmarshal(raw, &wire); err != nil {
		return err
	}
	m.Content = ""
	if len(wire.Content) == 0 || wire.Content[0] != '[' {
		return json.Unmarshal(orNull(wire.Content), &m.Content)
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(wire.Content, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		m.Content += p.Text
	}
	return nil
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// Tool is a tool that the client offers.
type Tool struct {
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// Reply is one answer: text, calls, or a fault.
type Reply struct {
	Text   string
	Calls  []Call
	Finish string // "" means stop, or tool_calls when there are calls
	Fault  Fault
	Quirk  Quirk
	// PromptTokens are counted in place of those that there were.
	PromptTokens int
	// Reasoning is streamed before the text, as text and as a signed block.
	Reasoning string
	Pause     time.Duration // before the first chunk
	// Delay between two chunks; 0 takes that of the server.
	Delay time.Duration
	// Cost is what the usage record says, in dollars.
	Cost float64
}

// Call is one tool call. Arguments is its JSON text, valid or not.
type Call struct {
	ID        string // "" is made up
	Name      string
	Arguments string
}

// CallJSON makes a call of a tool with arguments.
func CallJSON(name string, arguments map[string]any) Call {
	raw, err := json.Marshal(arguments)
	if err != nil {
		panic("modeltest: arguments are not JSON: " + err.Error())
	}
	return Call{Name: name, Arguments: string(raw)}
}

// Fault is a way to fail.
type Fault string

const (
	Unauthorized  Fault = "unauthorized"   // 401
	RateLimited   Fault = "rate_limited"   // 429 with Retry-After: 1
	LongLimit     Fault = "long_limit"     // 429 with Retry-After: 3600
	ServerError   Fault = "server_error"   // 500
	Overloaded    Fault = "overloaded"     // 503
	Rejected      Fault = "rejected"       // 400
	ContextLength Fault = "context_length" // 400 with the code for it
	Redirect      Fault = "redirect"       // 302 to another host
	Hang          Fault = "hang"           // headers, then nothing
	HangSilent    Fault = "hang_silent"    // not even headers
	Comments      Fault = "comments"       // keep-alive comments and nothing else
	Broken        Fault = "broken"         // the connection breaks in the middle
	Truncated     Fault = "truncated"      // the stream ends in the middle as if it were whole
	HTML          Fault = "html"           // 200 with a page
	JSONError     Fault = "json_error"     // 200 with an error as JSON
	ErrorFrame    Fault = "error_frame"    // an error in the middle of the stream
	Garbage       Fault = "garbage"        // a data line that is no JSON
)

// Quirk is a way to answer that is unusual and yet an answer.
type Quirk string

const (
	Whole           Quirk = "whole"            // one JSON completion in place of a stream
	NoUsage         Quirk = "no_usage"         // no usage record
	NoCost          Quirk = "no_cost"          // a usage record without a price
	NoIndex         Quirk = "no_index"         // pieces of calls without their index
	ObjectArguments Quirk = "object_arguments" // arguments as an object in place of text
	NoDone          Quirk = "no_done"          // no [DONE] at the end
)

// Server is the HTTP handler.
type Server struct {
	script Script
	delay  time.Duration
	mux    *http.ServeMux

	mu      sync.Mutex
	journal []Request
}

// NewServer serves script under /v1. delay is the pause between two chunks of a stream.
func NewServer(script Script, delay time.Duration) *Server {
	s := &Server{script: script, delay: delay, mux: http.NewServeMux()}
	s.mux.HandleFunc("POST /v1/chat/completions", s.complete)
	s.mux.HandleFunc("GET /v1/models", s.models)
	return s
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Journal is every request so far.
func (s *Server) Journal() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.journal)
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{
		"object": "list",
		"data":   []any{map[string]any{"id": s.script.Name(), "object": "model", "owned_by": "modeltest", "context_length": 128_000}},
	})
}

func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	var req Request
	var body map[string]json.RawMessage
	raw, err := readBody(r)
	if err == nil {
		err = json.Unmarshal(raw, &req)
	}
	if err == nil {
		err = json.Unmarshal(raw, &body)
	}
	if err == nil {
		err = checkPairs(req.Messages)
	}
	if err == nil {
		err = checkForm(body["messages"])
	}
	if err != nil {
		writeError(w, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	req.Authorization, req.Body = r.Header.Get("Authorization"), body
	s.mu.Lock()
	s.journal = append(s.journal, req)
	s.mu.Unlock()

	reply := s.script.Reply(req)
	if reply.Delay == 0 {
		reply.Delay = s.delay
	}
	if s.fails(w, r, reply.Fault) {
		return
	}
	st := &stream{w: w, ctx: r.Context(), delay: reply.Delay, model: s.script.Name()}
	if reply.Quirk == Whole {
		st.sendWhole(reply, len(raw)/4)
		return
	}
	st.send(reply, len(raw)/4)
}
