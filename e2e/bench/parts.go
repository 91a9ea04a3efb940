package main

import (
	"context"
	"errors"
)

// sandboxParts measure the sandboxes of one runtime.
func sandboxParts(runtime string) []part {
	in := func(measure func(*host, context.Context, *report) error) func(context.Context, *report) error {
		return func(ctx context.Context, r *report) (err error) {
			h, err := openHost(runtime)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, h.clean(ctx)) }()
			return measure(h, ctx, r)
		}
	}
	return []part{
		{runtime + " command", in((*host).command)},
		{runtime + " ready", in((*host).ready)},
		{runtime + " stream", in((*host).stream)},
		{runtime + " work", in((*host).work)},
		{runtime + " idle", in((*host).idle)},
		{runtime + " neighbour", in((*host).neighbour)},
	}
}
