package archtest

import (
	"fmt"
	"slices"
	"testing"
)

// owner lists the rooms that may import a library, with the reason.
type owner struct {
	library string // import path prefix
	rooms   []string
	reason  string
}

// owners lists the libraries with restricted imports.
var owners = []owner{
	{
		"github.com/ThreeDotsLabs",
		[]string{"internal/platform/stream", "internal/platform/notifier", "internal/buy/order", "test/bench"},
		"messages go through internal/platform/stream; order and notifier know the message type only",
	},
	{
		"github.com/redis/go-redis",
		[]string{
			"internal/platform/redisconn", "internal/testenv", "internal/buy/sale", "internal/buy/reservation", "internal/buy/admission", "internal/platform/captcha", "internal/platform/ratelimit",
			"internal/buy/order", "internal/platform/stream", "internal/platform/notifier", "internal/platform/auth", "internal/identity/account", "internal/gate/audit", "internal/gate/recordloss", "internal/app",
			"internal/buy/salestats", "test/bench",
		},
		"only packages that own keys talk to Redis",
	},
	{
		"ent",
		[]string{
			"ent", "internal/platform/postgres", "internal/buy/sale", "internal/buy/order", "internal/buy/orderfacts", "internal/pay/payment", "internal/buy/waitlist", "internal/buy/member", "internal/buy/acceptance", "internal/identity/account", "internal/outbox/queue", "internal/outbox/webhook", "internal/identity/servicetoken", "internal/identity/recipient", "internal/outbox/mail", "internal/outbox/notice", "internal/pay/receipt", "internal/buy/refusal", "internal/platform/deadletter",
			"internal/gate/preload", "internal/gate/audit", "internal/gate/recordloss", "internal/ops/seed", "internal/app",
			"internal/staff/operator", "internal/buy/orderintake", "internal/buy/salestats", "internal/staff/report",
		},
		"only packages that own tables, or build from them, see ent",
	},
	{"github.com/coreos/go-oidc", []string{"internal/identity/oidc"}, "internal/identity/oidc talks to providers"},
	{"github.com/MicahParks", []string{"internal/identity/oidc/issuer", "internal/buy/acceptance"}, "key sets: of other systems in internal/identity/oidc/issuer, of receipts in internal/buy/acceptance"},
	{"github.com/transparency-dev/merkle", []string{"internal/buy/draw", "internal/buy/acceptance"}, "trees of RFC 6962 that outsiders check: of draws, and of the log of acceptances"},
	{"golang.org/x/mod/sumdb", []string{"internal/buy/acceptance"}, "signed notes of the log of acceptances"},
	{"github.com/cloudflare/circl", []string{"internal/buy/draw"}, "the BLS signatures of the beacon, which no other library in use verifies"},
	{"github.com/wneessen/go-mail", []string{"internal/outbox/mail"}, "internal/outbox/mail talks to the mail server"},
	{"github.com/SherClockHolmes/webpush-go", []string{"internal/outbox/notice"}, "internal/outbox/notice talks to push services"},
	{"github.com/emersion", []string{"internal/testenv"}, "the mail server of tests"},
	{"github.com/stripe/stripe-go", []string{"internal/pay/payment/stripe", "internal/pay/payment/providertest"}, "one package per payment provider"},
	{"github.com/wechatpay-apiv3/wechatpay-go", []string{"internal/pay/payment/wechat", "internal/pay/payment/providertest"}, "one package per payment provider"},
	{"github.com/smartwalle", []string{"internal/pay/payment/alipay", "internal/pay/payment/providertest"}, "one package per payment provider"},
	{"internal/pay/payment/providertest", nil, "it is for tests"},
	{"github.com/lib/pq", []string{"internal/platform/postgres", "internal/testdb"}, "internal/platform/postgres classifies the errors of the database; internal/testdb keeps connections that clone databases"},
	{"modernc.org/sqlite", []string{"internal/platform/postgres"}, "internal/platform/postgres classifies the errors of the database"},
	{"github.com/prometheus/client_golang/prometheus/promhttp", []string{"internal/platform/telemetry"}, "internal/platform/telemetry serves the metrics; packages take a prometheus.Registerer"},
	{"github.com/prometheus/client_golang/prometheus/collectors", []string{"internal/platform/telemetry"}, "internal/platform/telemetry serves the metrics; packages take a prometheus.Registerer"},
	{"go.opentelemetry.io", []string{"internal/platform/tracing"}, "spans are made through internal/platform/tracing"},
	{"github.com/99designs/gqlgen", []string{"graph", "internal/app", "test/bench"}, "domains do not know the API"},
	{"github.com/alicebob/miniredis", []string{"internal/app"}, "the embedded Redis is for the demo; other packages are given a connection"},
	{"github.com/alecthomas/kong", []string{"cmd", "internal/platform/config"}, "arguments are parsed at the edge"},
	{
		"internal/outbox",
		[]string{
			"internal/buy/orderfacts", "internal/buy/sale", "internal/buy/waitlist", "internal/buy/admission/queue", "internal/identity/account", "internal/pay", "internal/gate/preload", "internal/staff", "internal/ops",
			"internal/app", "graph", "cmd",
		},
		"order and checkout do not know who reads what they write: order.Facts, checkout.Observer",
	},
	{"internal/testenv", []string{"internal/testdb"}, "it is for tests"},
	{"internal/testdb", nil, "it is for tests"},
	{"testing", []string{"internal/testenv", "internal/testdb"}, "it is for tests"},
}

// strangers returns the imports of a file that are restricted to other rooms. Tests may
// import anything.
func strangers(f file) []string {
	if f.isTest() || f.generated {
		return nil
	}
	var wrong []string
	for _, imported := range f.imports {
		for _, o := range owners {
			if !within(imported, o.library) || within(f.pkg(), o.library) {
				continue
			}
			if !slices.ContainsFunc(o.rooms, func(room string) bool { return within(f.pkg(), room) }) {
				wrong = append(wrong, fmt.Sprintf("%s imports %s: %s", f.path, imported, o.reason))
			}
		}
	}
	return wrong
}

func TestLibrariesStayWhereTheyAreOwned(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		for _, wrong := range strangers(f) {
			t.Error(wrong)
		}
	}
}

func TestTheTablesImportOnlyTheTypesOfIds(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		if !within(f.path, "ent/schema") {
			continue
		}
		for _, imported := range f.imports {
			if _, ours := place(imported); ours && imported != "internal/platform/id" && !f.isTest() {
				t.Errorf("%s imports %s: the tables are the bottom, the generated code is built from them", f.path, imported)
			}
		}
	}
}

func TestTheOwnersBite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file file
		want int
	}{
		{file{path: "graph/x.go", imports: []string{"github.com/redis/go-redis/v9", "ent/sale", "testing", "internal/testenv"}}, 4},
		{file{path: "internal/buy/order/x.go", imports: []string{"github.com/redis/go-redis/v9", "ent/order"}}, 0},
		{file{path: "internal/buy/order/x_test.go", imports: []string{"internal/testenv", "testing"}}, 0},
		{file{path: "internal/buy/sale/x.go", imports: []string{"testing/fstest", "entgo.io/ent"}}, 1},
	} {
		if got := strangers(c.file); len(got) != c.want {
			t.Errorf("%+v: %q, want %d findings", c.file, got, c.want)
		}
	}
}
