package telemetry

import (
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/lmittmann/tint"
	"github.com/mattn/go-isatty"

	"seckill/internal/platform/config"
)

// Format is the format of log lines.
type Format int

// Formats.
const (
	FormatJSON Format = iota // one JSON object per line, for machines
	FormatText               // one aligned line, coloured on a terminal, for reading
)

// LogOptions configure NewLogger.
type LogOptions struct {
	Level  slog.Leveler // minimum level; nil = info
	Format Format
	Color  bool // only with FormatText
}

// NewLogger returns a logger that writes to out, adds the request id of the context, and
// masks attributes with secret names, and what is secret in addresses.
func NewLogger(out io.Writer, o LogOptions) *slog.Logger {
	if o.Level == nil {
		o.Level = slog.LevelInfo
	}
	var h slog.Handler
	if o.Format == FormatText {
		h = tint.NewTextHandler(out, &tint.Options{
			Level: o.Level, NoColor: !o.Color, TimeFormat: time.TimeOnly + ".000", ReplaceAttr: redact,
		})
	} else {
		h = slog.NewJSONHandler(out, &slog.HandlerOptions{Level: o.Level, ReplaceAttr: redact})
	}
	return slog.New(requestAttr{h})
}

// IsTerminal reports whether the file is a terminal.
func IsTerminal(file *os.File) bool { return isatty.IsTerminal(file.Fd()) }

// masked replaces secret values.
const masked = "[masked]"

// secretWords are the last words of attribute names whose values are masked: credentials,
// captcha answers, bodies of messages and requests.
var secretWords = map[string]bool{
	"token": true, "tokens": true, "password": true, "passwd": true, "secret": true, "authorization": true, "cookie": true,
	"answer": true, "payload": true, "body": true, "variables": true, "jwt": true, "credentials": true, "hash": true,
}

// redact masks by the last word of the name, so that token_count is logged and path_token
// is masked.
func redact(_ []string, a slog.Attr) slog.Attr {
	words := strings.FieldsFunc(strings.ToLower(a.Key), func(r rune) bool { return r == '_' || r == '-' || r == '.' })
	if len(words) == 0 || !secretWords[words[len(words)-1]] {
		return withoutUserInfo(a)
	}
	if a.Value.Kind() == slog.KindString && a.Value.String() == "" {
		return a
	}
	return slog.String(a.Key, masked)
}

// withoutUserInfo masks the addresses in a text or an error: drivers quote those that they cannot
// parse or reach.
func withoutUserInfo(a slog.Attr) slog.Attr {
	var text string
	switch a.Value.Kind() {
	case slog.KindString:
		text = a.Value.String()
	case slog.KindAny:
		err, ok := a.Value.Any().(error)
		if !ok {
			return a
		}
		text = err.Error()
	default:
		return a
	}
	if masked := config.MaskText(text); masked != text {
		return slog.String(a.Key, masked)
	}
	return a
}
