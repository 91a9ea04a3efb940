package main

import (
	"context"

	"agent-sandboxing/agent/modeltest"
)

// modelRows are failures of the model in the middle of a turn, after it has written a file.
func modelRows() []row {
	var all []row
	for _, f := range []struct {
		fault modeltest.Fault
		code  string
	}{
		{modeltest.Unauthorized, "model_unauthorized"},
		{modeltest.RateLimited, "model_rate_limited"},
		{modeltest.LongLimit, "model_rate_limited"},
		{modeltest.ServerError, "model_unavailable"},
		{modeltest.Overloaded, "model_unavailable"},
		{modeltest.ContextLength, "context_overflow"},
		{modeltest.Redirect, "model_request_rejected"},
		{modeltest.Broken, "model_stream_error"},
		{modeltest.Truncated, "model_stream_error"},
		{modeltest.HTML, "model_stream_error"},
		{modeltest.JSONError, "model_stream_error"},
		{modeltest.ErrorFrame, "model_stream_error"},
		{modeltest.Garbage, "model_stream_error"},
	} {
		all = append(all, row{"model: " + string(f.fault), func(ctx context.Context, b *bench) (string, error) {
			name := b.newFile()
			id, err := b.create(ctx, "mdlinks", "file "+name+" then "+string(f.fault))
			if err != nil {
				return "", err
			}
			code, err := b.failed(ctx, id, f.code)
			if err != nil {
				return code, err
			}
			return code, b.goesOn(ctx, id, name)
		}})
	}
	for _, fault := range []string{string(modeltest.Hang), string(modeltest.HangSilent), string(modeltest.Comments), "wait"} {
		all = append(all, row{"cancel: while the model does " + fault, func(ctx context.Context, b *bench) (string, error) {
			name := b.newFile()
			id, err := b.create(ctx, "mdlinks", "file "+name+" then "+fault)
			if err != nil {
				return "", err
			}
			if _, err := b.until(ctx, id, "wrote its file", func(s state) bool {
				types, err := b.events(ctx, id)
				return err == nil && len(types) > 0 && (types[len(types)-1] == "agent_tool_result write" || types[len(types)-1] == "agent_tool_call bash")
			}); err != nil {
				return "", err
			}
			code, err := b.cancelled(ctx, id)
			if err != nil {
				return code, err
			}
			return code, b.goesOn(ctx, id, name)
		}})
	}
	return all
}
