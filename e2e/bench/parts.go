package main

import (
	"context"
	"errors"
)

// parts measure the sandboxes of one runtime.
func (h *host) parts() []part {
	in := func(measure func(*host, context.Context, *report) error) func(context.Context, *report) error {
		return func(ctx context.Context, r *report) (err error) {
			if err := h.open(); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, h.stop(ctx)) }()
			return measure(h, ctx, r)
		}
	}
	return []part{
		{h.name + " command", in((*host).command)},
		{h.name + " ready", in((*host).ready)},
		{h.name + " stream", in((*host).stream)},
		{h.name + " work", in((*host).work)},
		{h.name + " egress", in((*host).egress)},
		{h.name + " idle", in((*host).idle)},
		{h.name + " neighbour", in((*host).neighbour)},
	}
}
