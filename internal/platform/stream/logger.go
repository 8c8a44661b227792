package stream

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
)

// logger is watermill's LoggerAdapter on slog. It logs only fields with names and ids,
// never content, because watermill logs whole messages that it cannot publish.
// watermill's info level becomes debug, and its trace level is dropped. Each error text
// is logged at most once per second, with the number of suppressed repetitions, because
// in an outage every message in flight fails.
type logger struct {
	log     *slog.Logger
	sampler *sampler
}

func newLogger(log *slog.Logger) watermill.LoggerAdapter {
	return logger{log: log, sampler: &sampler{texts: map[string]*sample{}}}
}

// namingFields are the watermill fields that may be logged.
var namingFields = []string{
	"topic", "handler_name", "subscriber_name", "publisher_name", "message_uuid",
	"consumer_group", "consumer_uuid", "provider", "xid", "count", "timeout",
}

// Error logs an error at most once a second per text.
func (l logger) Error(msg string, err error, fields watermill.LogFields) {
	text, stack, _ := strings.Cut(msg, ". Stack: ")
	held, ok := l.sampler.allow(text, time.Now())
	if !ok {
		return
	}
	attrs := naming(fields)
	if err != nil {
		attrs = append(attrs, slog.String("error", reasonOf(err)))
	}
	if p, ok := errors.AsType[*panicError](err); ok {
		stack = p.stack
	}
	if stack != "" {
		attrs = append(attrs, slog.String("stack", stack))
	}
	if held > 0 {
		attrs = append(attrs, slog.Int("held_back", held))
	}
	l.log.LogAttrs(context.Background(), slog.LevelError, text, attrs...)
}

// Info logs at debug level.
func (l logger) Info(msg string, fields watermill.LogFields) { l.Debug(msg, fields) }

// Debug logs at debug level.
func (l logger) Debug(msg string, fields watermill.LogFields) {
	ctx := context.Background()
	if l.log.Enabled(ctx, slog.LevelDebug) {
		l.log.LogAttrs(ctx, slog.LevelDebug, msg, naming(fields)...)
	}
}

// Trace logs nothing, because it is called several times per message.
func (l logger) Trace(string, watermill.LogFields) {}

// With returns a logger that adds fields to every line.
func (l logger) With(fields watermill.LogFields) watermill.LoggerAdapter {
	handler := l.log.Handler().WithAttrs(naming(fields))
	return logger{log: slog.New(handler), sampler: l.sampler}
}

func naming(fields watermill.LogFields) []slog.Attr {
	var attrs []slog.Attr
	for _, name := range namingFields {
		if value, ok := fields[name]; ok {
			attrs = append(attrs, slog.Any(name, value))
		}
	}
	return slices.Clip(attrs)
}

// sampler passes each text once per second.
type sampler struct {
	mu    sync.Mutex
	texts map[string]*sample // watermill has a few fixed texts; guarded by mu
}

type sample struct {
	at   time.Time // when it was last logged
	held int       // suppressed repetitions since then
}

// maxTexts bounds the texts that the sampler stores; watermill has about twenty.
const maxTexts = 100

func (s *sampler) allow(text string, now time.Time) (held int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.texts[text]
	if seen == nil {
		if len(s.texts) < maxTexts {
			s.texts[text] = &sample{at: now}
		}
		return 0, true
	}
	if now.Sub(seen.at) < time.Second {
		seen.held++
		return 0, false
	}
	held, seen.at, seen.held = seen.held, now, 0
	return held, true
}
