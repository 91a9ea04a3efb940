package openai

import (
	"bytes"
	"encoding/json"
	"fmt"

	api "github.com/sashabaranov/go-openai"

	"agent-sandboxing/agent"
)

// request is the body of one chat completion. Its order is the order on the wire: what changes from
// request to request comes last.
type request struct {
	Model               string             `json:"model"`
	Stream              bool               `json:"stream"`
	StreamOptions       *api.StreamOptions `json:"stream_options"`
	MaxTokens           int                `json:"max_tokens,omitempty"`
	MaxCompletionTokens int                `json:"max_completion_tokens,omitempty"`
	ReasoningEffort     string             `json:"reasoning_effort,omitempty"`
	ParallelToolCalls   *bool              `json:"parallel_tool_calls,omitempty"`
	*router
	Tools    []tool    `json:"tools,omitempty"`
	Messages []message `json:"messages"`
}

// router is what only OpenRouter understands.
type router struct {
	Provider  upstreams `json:"provider"`
	Plugins   []plugin  `json:"plugins"`
	Usage     usageWish `json:"usage"`
	Reasoning *effort   `json:"reasoning,omitempty"`
}

type upstreams struct {
	RequireParameters bool     `json:"require_parameters"`
	DataCollection    string   `json:"data_collection"`
	Only              []string `json:"only,omitempty"`
	AllowFallbacks    *bool    `json:"allow_fallbacks,omitempty"`
}

type plugin struct {
	ID      string `json:"id"`
	Enabled bool   `json:"enabled"`
}

type usageWish struct {
	Include bool `json:"include"`
}

type effort struct {
	Effort string `json:"effort"`
}

type tool struct {
	Type         api.ToolType            `json:"type"`
	Function     *api.FunctionDefinition `json:"function"`
	CacheControl *cacheControl           `json:"cache_control,omitempty"`
}

type cacheControl struct {
	Type string `json:"type"`
}

func ephemeral() *cacheControl { return &cacheControl{Type: "ephemeral"} }

// body writes req as this endpoint wants it. The same request gives the same bytes.
func (c *Client) body(req agent.Request) ([]byte, error) {
	o := c.options
	out := request{
		Model:         o.Model,
		Stream:        true,
		StreamOptions: &api.StreamOptions{IncludeUsage: true},
	}
	if o.countsReasoning() {
		out.MaxCompletionTokens = o.MaxOutput
	} else {
		out.MaxTokens = o.MaxOutput
	}
	if o.OneCall {
		out.ParallelToolCalls = new(false)
	}
	if o.Dialect == DialectOpenRouter {
		out.router = o.router()
	} else {
		out.ReasoningEffort = o.Effort
	}
	for _, m := range req.Messages {
		out.Messages = append(out.Messages, o.message(m))
	}
	for _, t := range req.Tools {
		parameters := t.Parameters
		if o.Schema == SchemaMinimal {
			var err error
			if parameters, err = minimalSchema(parameters); err != nil {
				return nil, fmt.Errorf("the parameters of tool %s: %w", t.Name, err)
			}
		}
		out.Tools = append(out.Tools, tool{Type: api.ToolTypeFunction, Function: &api.FunctionDefinition{
			Name: t.Name, Description: t.Description, Parameters: parameters,
		}})
	}
	if o.marksCache() {
		markCache(out.Messages, out.Tools)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		return nil, fmt.Errorf("write the request: %w", err)
	}
	return b.Bytes(), nil
}

// router asks for upstreams that know every parameter and keep no text, and for the cost. The
// router's own shortening would tear calls from their answers, so it is off.
func (o Options) router() *router {
	r := &router{
		Provider: upstreams{RequireParameters: true, DataCollection: "deny"},
		Plugins:  []plugin{{ID: "context-compression"}},
		Usage:    usageWish{Include: true},
	}
	if o.AllowRetention {
		r.Provider.DataCollection = "allow"
	}
	if len(o.Providers) > 0 {
		r.Provider.Only = o.Providers
		r.Provider.AllowFallbacks = new(false)
	}
	if o.Effort != "" {
		r.Reasoning = &effort{Effort: o.Effort}
	}
	return r
}

// markCache marks the ends of what stays the same: the rules, the tools, and the conversation so far.
func markCache(messages []message, tools []tool) {
	if len(tools) > 0 {
		tools[len(tools)-1].CacheControl = ephemeral()
	}
	if len(messages) > 0 {
		messages[0].markCache()
		messages[len(messages)-1].markCache()
	}
}
