package openai

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

const (
	maxLine     = 4 << 20  // bytes of one line
	maxResponse = 64 << 20 // bytes of one response
)

var errTooLarge = errors.New("the answer is larger than the client takes")

// filter passes on the data lines of an event stream, in a form that the library's reader
// understands: one line end each, also for the last one, and never one that it takes for its own
// kind of error frame. Comments, events and ids stop here.
type filter struct {
	body  io.ReadCloser
	in    *bufio.Reader
	watch *watch
	out   []byte
	total int
	err   error
}

func newFilter(body io.ReadCloser, w *watch) *filter {
	return &filter{body: body, in: bufio.NewReaderSize(body, 32<<10), watch: w}
}

func (f *filter) Close() error { return f.body.Close() }

func (f *filter) Read(p []byte) (int, error) {
	for len(f.out) == 0 {
		if f.err != nil {
			return 0, f.err
		}
		f.next()
	}
	n := copy(p, f.out)
	f.out = f.out[n:]
	return n, nil
}

// next reads one line and keeps it when it is data. An error is kept for when the line is read.
func (f *filter) next() {
	var line []byte
	for {
		part, err := f.in.ReadSlice('\n')
		line = append(line, part...)
		f.total += len(part)
		if len(line) > maxLine || f.total > maxResponse {
			f.err = errTooLarge
			return
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			f.err = err
			break
		}
	}
	f.watch.line()
	if f.total == len(line) {
		line = bytes.TrimPrefix(line, []byte("\xEF\xBB\xBF")) // a byte order mark may begin a stream
	}
	data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:"))
	if data = bytes.TrimSpace(data); !ok || len(data) == 0 {
		return
	}
	f.watch.data()
	f.out = append(f.out[:0], "data: "...)
	if data[0] == '{' {
		f.out = append(f.out, "{ "...)
		data = data[1:]
	}
	f.out = append(append(f.out, data...), '\n')
}
