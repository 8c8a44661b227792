package doctor

import (
	"errors"
	"net"
	"strings"

	"seckill/internal/platform/config"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/redisconn"
)

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
