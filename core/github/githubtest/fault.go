package githubtest

import (
	"net"
	"net/http"
	"time"
)

// maxRequests bounds the list that Requests returns.
const maxRequests = 2000

// Fault makes requests go wrong. Fields that are zero change nothing.
type Fault struct {
	// Pattern selects requests as http.ServeMux does: "POST /api/v3/repos/{owner}/{repo}/pulls".
	Pattern string
	Skip    int // let so many matching requests pass first
	Count   int // then spoil so many; 0 means every one

	Delay  time.Duration // wait first, at most until the client gives up
	Status int           // answer this instead; 0 asks the real handler
	Header http.Header   // added to the answer
	Body   string        // of the answer with Status
	Cut    bool          // close the connection in the middle of the body, or before any answer when Status is 0

	mux *http.ServeMux
}

// Fail adds a fault; of several that match a request the first one that is not used up acts.
func (s *Server) Fail(f Fault) {
	f.mux = http.NewServeMux()
	f.mux.HandleFunc(f.Pattern, func(http.ResponseWriter, *http.Request) {})
	if f.Count == 0 {
		f.Count = -1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &f)
}

// ClearFaults ends all faults.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// Requests are the latest requests as "METHOD /path?query", oldest first, without headers or bodies.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.requests...)
}

// faultFor takes the fault that acts on a request, nil for none.
func (s *Server) faultFor(r *http.Request) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		if _, pattern := f.mux.Handler(r); pattern == "" || f.Count == 0 {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			continue
		}
		if f.Count > 0 {
			f.Count--
		}
		return f
	}
	return nil
}

// observe records requests and applies faults in front of h.
func (s *Server) observe(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A web page elsewhere cannot get here by giving its own name our address.
		if host, _, err := net.SplitHostPort(r.Host); err == nil && !isLoopback(host) || err != nil && !isLoopback(r.Host) {
			http.Error(w, "The stand-in answers on loopback only.", http.StatusForbidden)
			return
		}
		s.record(r)
		f := s.faultFor(r)
		if f == nil {
			h.ServeHTTP(w, r)
			return
		}
		f.spoil(w, r, h)
	})
}

func (s *Server) record(r *http.Request) {
	line := r.Method + " " + r.URL.Path
	if r.URL.RawQuery != "" {
		line += "?" + r.URL.RawQuery
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.requests) >= maxRequests {
		s.requests = s.requests[1:]
	}
	s.requests = append(s.requests, line)
}

// spoil answers r wrongly, or h's answer late and with more headers.
func (f *Fault) spoil(w http.ResponseWriter, r *http.Request, h http.Handler) {
	if f.Delay > 0 {
		t := time.NewTimer(f.Delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-r.Context().Done():
			return
		}
	}
	for k, vs := range f.Header {
		w.Header()[http.CanonicalHeaderKey(k)] = vs
	}
	switch {
	case f.Status == 0 && f.Cut:
		panic(http.ErrAbortHandler)
	case f.Status == 0:
		h.ServeHTTP(w, r)
		return
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
	}
	if f.Cut {
		w.Header().Set("Content-Length", "1000000")
	}
	w.WriteHeader(f.Status)
	_, _ = w.Write([]byte(f.Body)) // the client has gone away when this fails
	if f.Cut {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}
