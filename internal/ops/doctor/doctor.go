// Package doctor checks an installation, before or while it runs: settings, payment
// providers, the mail server, issuers of tokens, Postgres, Redis and the clocks. It reports problems with
// their remedy, and changes nothing.
//
// The requirements for a start are checked again when the services are opened; the doctor
// reports more, and all problems at once.
package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"net/http"
	"time"

	"seckill/internal/platform/clock"
	"seckill/internal/platform/config"
)

// Level is the severity of a finding.
type Level string

// Levels.
const (
	OK      Level = "ok"      // checked, without a problem
	Warning Level = "warning" // works, but needs attention
	Error   Level = "error"   // must be fixed
)

// Finding is the result of one check.
type Finding struct {
	Area    string `json:"area"` // config, payments, mail, issuers, postgres, redis or clock
	Level   Level  `json:"level"`
	Message string `json:"message"`
}

// Limits of a check.
const (
	serviceTimeout = 5 * time.Second        // for all requests to one service
	maxSkew        = 500 * time.Millisecond // windows and deadlines are checked against three clocks
)

// Deps are the parts of an installation to check.
type Deps struct {
	Config   *config.Config
	Fit      func() error // what a server checks before it connects; nil = Config.Validate
	Settings []config.Setting
	Former   []string // old names in use, as config.Source.Former returns them
	Environ  []string // as of os.Environ
	Clock    clock.Clock
	Timeout  time.Duration // for all requests to one service; 0 = 5 s
	Client   *http.Client  // calls the public address; nil = a plain one
	MailTLS  *tls.Config   // of the mail server; nil = the authorities of the system
	Files    int           // that a process may open; 0 = as this one
}

func (d Deps) timeout() time.Duration { return cmp.Or(d.Timeout, serviceTimeout) }

// Check makes all checks and returns the findings in the order of areas.
func Check(ctx context.Context, d Deps) []Finding {
	var r report
	r.settings(d)
	r.payments(ctx, d)
	r.mail(ctx, d)
	r.issuers(ctx, d)
	r.postgres(ctx, d)
	r.redis(ctx, d)
	return r.findings
}

// Healthy reports whether no finding is an error.
func Healthy(findings []Finding) bool {
	for _, f := range findings {
		if f.Level == Error {
			return false
		}
	}
	return true
}

type report struct{ findings []Finding }

func (r *report) add(area string, level Level, message string) {
	r.findings = append(r.findings, Finding{Area: area, Level: level, Message: config.MaskText(message)})
}
