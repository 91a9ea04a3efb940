package web

import (
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/time/rate"

	"agent-sandboxing/core"
	"agent-sandboxing/handlers"
)

// Limits are one person's allowance: Burst at once, then PerSecond. A page costs 1, a new session 5.
type Limits struct {
	PerSecond float64 // 0 means 10
	Burst     int     // 0 means 100
}

// limiter keeps an allowance per person. Whole allowances are forgotten: they are what a stranger has.
type limiter struct {
	limits Limits
	mu     sync.Mutex
	people map[string]*rate.Limiter
	swept  time.Time
}

const sweepEvery = time.Minute

func newLimiter(l Limits) *limiter {
	if l.PerSecond == 0 {
		l.PerSecond = 10
	}
	if l.Burst == 0 {
		l.Burst = 100
	}
	return &limiter{limits: l, people: make(map[string]*rate.Limiter)}
}

// spend takes weight from the allowance of who asks, or refuses with the time to wait.
func (l *limiter) spend(weight int) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			now := time.Now()
			allowance := l.of(handlers.UserID(c), now)
			if allowance.AllowN(now, weight) {
				return next(c)
			}
			wait := time.Duration((float64(weight) - allowance.TokensAt(now)) / l.limits.PerSecond * float64(time.Second))
			seconds := int(math.Ceil(wait.Seconds()))
			e := core.Fail(core.RateLimited, "too_many_requests",
				"You are asking faster than this server takes. Wait "+strconv.Itoa(seconds)+" s and try again.")
			e.RetryAt = now.Add(wait)
			return e
		}
	}
}

func (l *limiter) of(person string, now time.Time) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.swept) > sweepEvery {
		l.swept = now
		for who, a := range l.people {
			if a.TokensAt(now) >= float64(l.limits.Burst) {
				delete(l.people, who)
			}
		}
	}
	a := l.people[person]
	if a == nil {
		a = rate.NewLimiter(rate.Limit(l.limits.PerSecond), l.limits.Burst)
		l.people[person] = a
	}
	return a
}
