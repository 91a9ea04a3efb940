package docker_test

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/docker/dockertest"
)

// A command's output is cut where it is written: a gigabyte of it costs the worker nothing. It runs
// alone, because it measures the process.
func TestOutputFlood_CostsTheWorkerNothing(t *testing.T) { //nolint:paralleltest // see above
	const most = 8 << 20 // bytes
	b := start(t, dockertest.New(t), spec())
	b.sh(t, "true")
	defer debug.SetGCPercent(debug.SetGCPercent(10)) // little but what is in use
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before, grown := int64(m.HeapAlloc), int64(0)
	type outcome struct {
		core.CommandResult
		err error
	}
	ended := make(chan outcome, 1)
	go func() {
		res, err := b.Run(t.Context(), core.Command{Shell: "head -c 1073741824 /dev/zero >&2; timeout 1 yes; echo end", LogName: "flood.log"})
		ended <- outcome{res, err}
	}()
	for tick := time.NewTicker(5 * time.Millisecond); len(ended) == 0; <-tick.C {
		runtime.ReadMemStats(&m)
		grown = max(grown, int64(m.HeapAlloc)-before)
	}
	if res := <-ended; res.err != nil || res.Exit != 0 || res.Total <= 1<<30 || res.Omitted != res.Total-50<<10 {
		t.Errorf("exit %d, %d bytes, %d omitted, %v", res.Exit, res.Total, res.Omitted, res.err)
	}
	if grown > most {
		t.Errorf("the worker grew by %d KiB", grown>>10)
	}
	t.Logf("the worker grew by %d KiB", grown>>10)
}
