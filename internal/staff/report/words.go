package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // the zones of readers, also where the machine has none

	"seckill/internal/platform/locale"
)

// Reader is the language and time zone of a report. The zero value is English and UTC.
type Reader struct {
	Language locale.Language
	Zone     *time.Location
}

// words are the texts and formats of a reader.
type words struct {
	chinese bool
	zone    *time.Location
}

func (r Reader) words() words {
	w := words{chinese: r.Language == locale.Chinese, zone: r.Zone}
	if w.zone == nil {
		w.zone = time.UTC
	}
	return w
}

// text is a text in both languages. A text without Chinese was read from a stored report.
type text struct{ en, zh string }

// say returns a text with its values in the reader's language.
func (w words) say(t text, values ...any) string {
	said := t.en
	if w.chinese && t.zh != "" {
		said = t.zh
	}
	if len(values) == 0 {
		return said
	}
	return fmt.Sprintf(said, values...)
}

// page returns a text of the page with its values.
func (w words) page(name string, values ...any) string { return w.say(pageTexts[name], values...) }

// lasts returns milliseconds as a duration.
func (w words) lasts(ms float64) string {
	number, unit := lasting(ms)
	return strings.TrimSpace(number + " " + w.say(unit))
}

// reached returns the time from the opening until the sale was sold out, if it was.
func (w words) reached(ms int64) string {
	if ms < 0 {
		return w.say(notSoldOut)
	}
	return w.lasts(float64(ms))
}

// at returns a time to the second, without its zone.
func (w words) at(t time.Time) string { return t.In(w.zone).Format("2006-01-02 15:04:05") }

// day returns a time in words.
func (w words) day(t time.Time) string {
	if w.chinese {
		return t.In(w.zone).Format("2006年1月2日 15:04:05")
	}
	return t.In(w.zone).Format("2 January 2006, 15:04:05")
}

// when returns the time of day of a time that may be missing.
func (w words) when(t *time.Time) string {
	if t == nil {
		return "–"
	}
	return t.In(w.zone).Format("15:04:05")
}

// share returns a share as a percentage.
func (w words) share(v float64) string {
	return strconv.FormatFloat(math.Floor(v*1000)/10, 'f', -1, 64) + "%"
}

// Units of time, and what stands for a missing one.
var (
	milliseconds = text{"ms", "毫秒"}
	seconds      = text{"s", "秒"}
	minutes      = text{"min", "分钟"}
	hours        = text{"h", "小时"}
	notSoldOut   = text{"not sold out", "未售罄"}
)
