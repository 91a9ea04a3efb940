package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	api "github.com/sashabaranov/go-openai"

	"agent-sandboxing/agent"
)

// request writes the conversation in the library's types. Their content and arguments are left out
// when they are empty, which providers refuse, so neither ever is.
func (c *Client) request(req agent.Request) api.ChatCompletionRequest {
	out := api.ChatCompletionRequest{
		Model:         c.model,
		Stream:        true,
		StreamOptions: &api.StreamOptions{IncludeUsage: true},
	}
	for _, m := range req.Messages {
		message := api.ChatCompletionMessage{Role: string(m.Role), Content: m.Text, ToolCallID: m.CallID}
		if m.Text == "" && len(m.Calls) == 0 {
			message.Content = "(empty)"
		}
		for _, call := range m.Calls {
			arguments := call.Arguments
			if arguments == "" {
				arguments = "{}"
			}
			message.ToolCalls = append(message.ToolCalls, api.ToolCall{
				ID: call.ID, Type: api.ToolTypeFunction,
				Function: api.FunctionCall{Name: call.Name, Arguments: arguments},
			})
		}
		out.Messages = append(out.Messages, message)
	}
	for _, t := range req.Tools {
		out.Tools = append(out.Tools, api.Tool{Type: api.ToolTypeFunction, Function: &api.FunctionDefinition{
			Name: t.Name, Description: t.Description, Parameters: t.Parameters,
		}})
	}
	return out
}

// addDialect puts into the body what the library has no fields for.
func addDialect(req *http.Request, d Dialect) error {
	if d != DialectOpenRouter {
		return nil
	}
	req.Header.Set("X-Title", "Agent Sandboxing")
	raw, err := io.ReadAll(req.Body)
	if err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	var body map[string]json.RawMessage
	if err := json.Unmarshal(raw, &body); err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	// Only providers that know every parameter and do not keep the text; the cost with the usage.
	body["provider"] = json.RawMessage(`{"require_parameters":true,"data_collection":"deny"}`)
	body["usage"] = json.RawMessage(`{"include":true}`)
	if raw, err = json.Marshal(body); err != nil {
		return fmt.Errorf("write the request: %w", err)
	}
	req.ContentLength = int64(len(raw))
	req.Body = io.NopCloser(bytes.NewReader(raw))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }
	return nil
}
