// Package doctor examines an installation before, or while, it serves: settings,
// Postgres, Redis and the clocks. It says what is wrong and what to do, and
// changes nothing.
//
// What must hold for the product to start is checked again by those who open the
// services; the doctor tells more, and all at once.
package doctor

import (
	"context"
	"time"

	"seckill/internal/clock"
	"seckill/internal/config"
)

// Level is how bad a finding is.
type Level string

// Levels.
const (
	OK      Level = "ok"      // examined, and fit
	Warning Level = "warning" // works, but an operator should know
	Error   Level = "error"   // must be mended
)

// Finding is one thing that was examined.
type Finding struct {
	Area    string `json:"area"` // config, postgres, redis or clock
	Level   Level  `json:"level"`
	Message string `json:"message"`
}

// Bounds of an examination.
const (
	serviceTimeout = 5 * time.Second        // for all that one service is asked
	maxSkew        = 500 * time.Millisecond // windows and deadlines are judged by three clocks
)

// Deps is what is examined.
type Deps struct {
	Config   *config.Config
	Settings []config.Setting
	Environ  []string // as of os.Environ
	Clock    clock.Clock
}

// Check examines everything and returns what it found, in the order of areas.
func Check(ctx context.Context, d Deps) []Finding {
	var r report
	r.settings(d)
	r.postgres(ctx, d)
	r.redis(ctx, d)
	return r.findings
}

// Healthy says whether no finding is an error.
func Healthy(findings []Finding) bool {
	for _, f := range findings {
		if f.Level == Error {
			return false
		}
	}
	return true
}

// report collects findings.
type report struct{ findings []Finding }

func (r *report) add(area string, level Level, message string) {
	r.findings = append(r.findings, Finding{Area: area, Level: level, Message: message})
}
