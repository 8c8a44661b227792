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
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"seckill/internal/platform/clock"
	"seckill/internal/platform/config"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/redisconn"
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

// WriteJSON prints {ok, findings}.
func WriteJSON(out io.Writer, findings []Finding) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	if err := e.Encode(struct {
		OK       bool      `json:"ok"`
		Findings []Finding `json:"findings"`
	}{Healthy(findings), findings}); err != nil {
		return fmt.Errorf("print findings: %w", err)
	}
	return nil
}

// WriteTable prints one line for each finding.
func WriteTable(out io.Writer, findings []Finding) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range findings {
		if _, err := fmt.Fprintf(w, "%s\t%s\t%s\n", f.Level, f.Area, f.Message); err != nil {
			return fmt.Errorf("print findings: %w", err)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print findings: %w", err)
	}
	return nil
}

// PostgresAway describes an error of postgres.Open in one line: the setting, the problem,
// and the remedy.
func PostgresAway(cfg *config.Config, err error) error { return postgresAway(cfg, err) }

func postgresAway(cfg *config.Config, err error) *awayError {
	return &awayError{setting: config.EnvName("database-url"), area: areaPostgres, at: cfg.DatabaseURL,
		hint: postgres.Hint(err), err: err}
}

// RedisAway describes an error of redisconn.Open like PostgresAway.
func RedisAway(cfg *config.Config, err error) error { return redisAway(cfg, err) }

func redisAway(cfg *config.Config, err error) *awayError {
	return &awayError{setting: config.EnvName("redis-url"), area: areaRedis, at: cfg.RedisURL, hint: redisconn.Hint(err),
		err: err}
}

// awayError reports a service that cannot be opened.
type awayError struct {
	setting, area string
	at            config.Secret
	hint          string
	err           error
}

// Error returns the line for a command.
func (e *awayError) Error() string { return e.setting + ": " + e.area + " " + e.what() }

// finding returns the line for the doctor, which already names the service.
func (e *awayError) finding() string { return e.what() + " (" + e.setting + ")" }

func (e *awayError) Unwrap() error { return e.err }

func (e *awayError) what() string {
	verb := "cannot be used at "
	if _, ok := errors.AsType[net.Error](e.err); ok {
		verb = "cannot be reached at "
	}
	cause := strings.Join(strings.Fields(e.err.Error()), " ") // a server may answer with several lines
	cause = strings.TrimPrefix(strings.TrimPrefix(cause, "connect to "+e.area+": "), "pq: ")
	return verb + e.at.String() + ": " + cause + ": " + e.hint
}
