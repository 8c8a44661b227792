package config

import (
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// Profile is a set of defaults: strict or convenient.
type Profile string

// Profiles.
const (
	ProfileProduction  Profile = "production"
	ProfileDevelopment Profile = "development"
)

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Profile) UnmarshalText(text []byte) error {
	return oneOf(p, text, ProfileProduction, ProfileDevelopment)
}

// LogFormat is the format of log lines.
type LogFormat string

// Log formats.
const (
	LogAuto LogFormat = "auto" // text on a terminal and in the development profile, else JSON
	LogJSON LogFormat = "json"
	LogText LogFormat = "text"
)

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *LogFormat) UnmarshalText(text []byte) error {
	return oneOf(f, text, LogAuto, LogJSON, LogText)
}

// Switch is on or off.
type Switch string

// Values of a Switch.
const (
	SwitchOn  Switch = "on"
	SwitchOff Switch = "off"
)

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Switch) UnmarshalText(text []byte) error { return oneOf(s, text, SwitchOn, SwitchOff) }

// RiskFailure selects what happens while the risk service does not answer.
type RiskFailure string

// Values of RiskFailure.
const (
	RiskFailureOpen   RiskFailure = "open"
	RiskFailureClosed RiskFailure = "closed"
)

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *RiskFailure) UnmarshalText(text []byte) error {
	return oneOf(r, text, RiskFailureOpen, RiskFailureClosed)
}

// StaffTOTP selects whether operators and administrators need one-time codes.
type StaffTOTP string

// Values of StaffTOTP.
const (
	StaffTOTPOptional StaffTOTP = "optional"
	StaffTOTPRequired StaffTOTP = "required" // without one, staff have the rights of a customer
)

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *StaffTOTP) UnmarshalText(text []byte) error {
	return oneOf(s, text, StaffTOTPOptional, StaffTOTPRequired)
}

// Documents selects which GraphQL documents are executed.
type Documents string

// Values of Documents.
const (
	DocumentsAny     Documents = "any"     // all documents within the cost limits
	DocumentsTrusted Documents = "trusted" // those of the shop and of SECKILL_TRUSTED_DOCUMENTS
)

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Documents) UnmarshalText(text []byte) error {
	return oneOf(d, text, DocumentsAny, DocumentsTrusted)
}

// Pooling says what an address of Postgres leads to.
type Pooling string

// Values of Pooling.
const (
	PoolingSession     Pooling = "session"     // a server, or a pooler that keeps one server for a connection
	PoolingTransaction Pooling = "transaction" // a pooler that may change the server after each transaction
)

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Pooling) UnmarshalText(text []byte) error {
	return oneOf(p, text, PoolingSession, PoolingTransaction)
}

// Introspection selects the callers that may query the schema.
type Introspection string

// Values of Introspection.
const (
	IntrospectionAuto  Introspection = "auto"  // on in the development profile, else off
	IntrospectionOff   Introspection = "off"   // none
	IntrospectionStaff Introspection = "staff" // operators and administrators
	IntrospectionOn    Introspection = "on"    // all
)

// UnmarshalText implements encoding.TextUnmarshaler.
func (i *Introspection) UnmarshalText(text []byte) error {
	return oneOf(i, text, IntrospectionAuto, IntrospectionOff, IntrospectionStaff, IntrospectionOn)
}

// AutoSwitch is on, off, or set by the profile.
type AutoSwitch string

// Values of an AutoSwitch.
const (
	AutoSwitchAuto AutoSwitch = "auto" // on in the development profile, else off
	AutoSwitchOn   AutoSwitch = "on"
	AutoSwitchOff  AutoSwitch = "off"
)

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *AutoSwitch) UnmarshalText(text []byte) error {
	return oneOf(s, text, AutoSwitchAuto, AutoSwitchOn, AutoSwitchOff)
}

func oneOf[T ~string](target *T, text []byte, allowed ...T) error {
	words := make([]string, 0, len(allowed))
	for _, a := range allowed {
		if string(a) == string(text) {
			*target = a
			return nil
		}
		words = append(words, string(a))
	}
	return fmt.Errorf("%q is not one of %s", text, strings.Join(words, ", "))
}

// readLevel parses the minimum level to log.
func readLevel(text string) (slog.Level, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(text)); err != nil {
		return 0, fmt.Errorf("%q is not one of debug, info, warn, error", text)
	}
	return level, nil
}

// readNetwork parses a network, or an address as a network of one address.
func readNetwork(text string) (netip.Prefix, error) {
	text = strings.TrimSpace(text)
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		return addr.Prefix(addr.BitLen())
	}
	network, err := netip.ParsePrefix(text)
	if err != nil {
		return network, fmt.Errorf("%q is neither an address nor a network: write 10.0.0.7 or 10.0.0.0/8", text)
	}
	return network, nil
}

// RateLimit is the rate limit of one operation of the API: at most Burst calls in any
// window of Burst / PerSecond seconds.
type RateLimit struct {
	Operation string
	Burst     int
	PerSecond float64
}

// String returns the limit as it is written in settings.
func (r RateLimit) String() string {
	return fmt.Sprintf("%s=%d/%s", r.Operation, r.Burst, time.Duration(float64(r.Burst)/r.PerSecond*float64(time.Second)))
}

// Bounds of rate limits, in calls a second, and of both in calls: 0 would bar an operation,
// and more than a million is no limit.
const (
	leastPerSecond = 1.0 / (24 * 60 * 60)
	mostCalls      = 1_000_000
)

// readRateLimit parses operation=calls/window, or as in earlier releases
// operation=calls/callsPerSecond, whose window is calls / callsPerSecond.
func readRateLimit(text string) (RateLimit, error) {
	operation, limit, _ := strings.Cut(strings.TrimSpace(text), "=")
	first, second, _ := strings.Cut(limit, "/")
	burst, err1 := strconv.Atoi(first)
	perSecond, err2 := strconv.ParseFloat(second, 64)
	if window, err := time.ParseDuration(second); err2 != nil && err == nil {
		perSecond, err2 = float64(burst)/window.Seconds(), nil
	}
	if operation == "" || err1 != nil || err2 != nil || burst < 1 || burst > mostCalls ||
		!(perSecond >= leastPerSecond && perSecond <= mostCalls) {
		return RateLimit{}, fmt.Errorf("%q is not a rate limit: write operation=calls/window, such as login=10/50s, with at least one call a day", text)
	}
	return RateLimit{Operation: operation, Burst: burst, PerSecond: perSecond}, nil
}

// reader makes kong parse values of a type with read, whose errors describe the expected
// format.
func reader[T any](read func(string) (T, error)) kong.Option {
	return kong.TypeMapper(reflect.TypeFor[T](),
		kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
			var text string
			if err := ctx.Scan.PopValueInto("value", &text); err != nil {
				return err
			}
			value, err := read(text)
			if err != nil {
				return err
			}
			target.Set(reflect.ValueOf(value))
			return nil
		}))
}

// Secret is a text that is masked when printed or logged. Reveal returns the value.
type Secret string

// Reveal returns the value itself.
func (s Secret) Reveal() string { return string(s) }

// String returns a mask. In addresses only user, password and parameters are masked.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return maskAddress(string(s))
}

// GoString returns a mask, so that %#v does not reveal the value.
func (s Secret) GoString() string { return s.String() }

// LogValue returns a mask.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText returns a mask, for JSON and the like.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
