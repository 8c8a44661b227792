package report_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"seckill/internal/buy/salestats"
	"seckill/internal/staff/report"
)

// Redis is lost in the middle of a sale whose figures were not kept in Postgres yet.
func TestAReportSaysSinceWhenItCountsRequests(t *testing.T) {
	t.Parallel()
	for name, loses := range map[string]bool{"lost": true, "nothing lost": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			count := func() {
				t.Helper()
				e.count.Placed(salestats.Placement{Sale: e.sale, Took: time.Millisecond})
				e.must(e.count.Flush(t.Context()))
			}
			count()
			if loses {
				keys, err := e.conn.Cmd.Keys(t.Context(), e.keys.Prefix+"*").Result()
				e.must(err)
				e.must(e.conn.Cmd.Del(t.Context(), keys...).Err())
			}
			e.clock.Advance(20 * time.Minute)
			since := e.clock.Now().Format(time.RFC3339)
			count()
			var text, page bytes.Buffer
			r := e.build()
			e.must(r.Text(&text))
			e.must(r.HTML(&page, report.Reader{}))
			line := "  counted    requests since " + since + "; Redis lost the counts before\n"
			if strings.Contains(text.String(), line) != loses || strings.Contains(text.String(), "counted ") != loses {
				t.Errorf("want the line %t: %q in\n%s", loses, line, text.String())
			}
			if strings.Contains(page.String(), "Requests are counted since ") != loses {
				t.Errorf("want the words on the page: %t", loses)
			}
		})
	}
}
