package main

import (
	"context"
	"errors"
	"time"
)

const (
	// build compiles the library's own sources: nothing but the processor takes part.
	build = `python3 - <<'END'
import glob, time
sources = [open(f, 'rb').read() for f in sorted(glob.glob('/usr/lib/python3*/*.py'))[:120]]
began = time.perf_counter()
for text in sources:
    compile(text, 'x', 'exec')
print(int((time.perf_counter() - began) * 1e6))
END`
	// trees is what git and package managers do with many small files.
	trees = `set -e; rm -rf tree; mkdir tree; cd tree
python3 - <<'END'
import os
for i in range(2000):
    os.makedirs(f'pkg{i % 40}', exist_ok=True)
    with open(f'pkg{i % 40}/file{i}.js', 'w') as f:
        f.write(f'line of file {i}\n' * 200)
END
git init -q . && git add . && git -c user.name=Bench -c user.email=bench@example.com commit -q -m files
began=$EPOCHREALTIME
for i in 1 2 3; do git status --porcelain; done
cp -r pkg1 pkg2 pkg3 pkg4 pkg5 /tmp; cat /tmp/pkg*/* | wc -c >/dev/null; rm -r /tmp/pkg*
ended=$EPOCHREALTIME
echo $((${ended/./}-${began/./}))`
)

// work is S7: the processor is as fast inside as in any container, and gVisor's price for many small
// files is known.
func (h *host) work(ctx context.Context, r *report) error {
	// The fastest of each: what the host gives when nobody else wants it.
	own, other, err := h.side(ctx, build, h.name, 10)
	if err != nil {
		return err
	}
	r.judge(own*100 <= other*103, "S7 %s: a build %.0f ms, in a bare container %.0f ms, ratio %s (budget 1.03)", h.name, ms(own), ms(other), ratio(own, other))
	if own, other, err = h.side(ctx, trees, "runc", 5); err != nil {
		return err
	}
	r.judge(own <= 3*other, "S7 %s: git status and copies of small files %.0f ms, in a bare container of runc %.0f ms, ratio %s (budget 3)", h.name, ms(own), ms(other), ratio(own, other))
	return nil
}

// side runs a text in a sandbox and in a bare container of a runtime in turns, and says the least of
// what it printed there.
func (h *host) side(ctx context.Context, text, runtime string, times int) (own, other time.Duration, err error) {
	b, err := h.box(ctx)
	if err != nil {
		return 0, 0, err
	}
	var ours, theirs []time.Duration
	for range times {
		inside, err1 := sh(ctx, b, text)
		outside, err2 := cli(ctx, "run", "--rm", "--network", "none", "--runtime", runtime, "--workdir", "/var/tmp", h.image, "bash", "-c", text)
		if err := errors.Join(err1, err2); err != nil {
			return 0, 0, err
		}
		a, err3 := micros(inside)
		c, err4 := micros(outside)
		if err := errors.Join(err3, err4); err != nil {
			return 0, 0, err
		}
		ours, theirs = append(ours, a...), append(theirs, c...)
	}
	return percentile(ours, 0), percentile(theirs, 0), h.drop(ctx, b)
}
