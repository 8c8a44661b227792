package doctor_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"seckill/internal/ops/doctor"
	"seckill/internal/pay/payment/providertest"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// cards are the settings of Stripe.
func cards(t *testing.T, key, public string) doctor.Deps {
	t.Helper()
	return deps(t, testdb.PostgresURL(t), testenv.RedisURL(t), "SECKILL_SANDBOX", "off",
		"payments.stripe.key", key, "payments.stripe.webhook-secret", "whsec_1", "SECKILL_PUBLIC_URL", public)
}

func TestDoctorNamesTheAddressForStripeAndWarnsOfTestKeys(t *testing.T) {
	t.Parallel()
	shop := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/webhooks/payments/stripe" {
			w.Header().Set("Allow", "POST")
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
	}))
	t.Cleanup(shop.Close)
	d := cards(t, "sk_live_1", shop.URL)
	d.Client = shop.Client()
	all := stripeEndpoint(shop.URL, "enabled", `"*"`)
	stripeAccount(t, &d, &all)
	live := check(t, d)
	wants(t, live, "payments", doctor.OK, "stripe reports to "+shop.URL+"/webhooks/payments/stripe, which leads to this shop")
	for _, f := range live {
		if strings.Contains(f.Message, "no payment provider") {
			t.Errorf("finding %+v", f)
		}
	}
	trial := check(t, cards(t, "sk_test_1", "http://shop.example.com"))
	wants(t, trial, "payments", doctor.Warning, "payments.stripe.key is a key of test mode")
	wants(t, trial, "payments", doctor.Warning, "SECKILL_PUBLIC_URL is not https")
}

// stripeAccount makes Stripe an account with endpoints; "" = the key may not read them.
func stripeAccount(t *testing.T, d *doctor.Deps, endpoints *string) {
	t.Helper()
	account := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/webhook_endpoints" || *endpoints == "" {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"error":{"type":"invalid_request_error","message":"The provided key does not have the required permissions"}}`)
			return
		}
		fmt.Fprintf(w, `{"object":"list","url":"/v1/webhook_endpoints","has_more":false,"data":[%s]}`, *endpoints)
	}))
	t.Cleanup(account.Close)
	d.Config.StripeAPIURL = account.URL
	d.Fit = func() error { return nil } // production refuses the address
}

func stripeEndpoint(shop, status, events string) string {
	return fmt.Sprintf(`{"id":"we_1","object":"webhook_endpoint","url":%q,"status":%q,"enabled_events":[%s]}`, shop+"/webhooks/payments/stripe", status, events)
}

// The endpoint in Stripe's dashboard may lack events that a later release needs.
func TestDoctorNamesEventsThatStripeDoesNotSend(t *testing.T) {
	t.Parallel()
	const needed = `"checkout.session.async_payment_failed","checkout.session.async_payment_succeeded","checkout.session.completed",
		"checkout.session.expired","payment_intent.succeeded","payment_intent.canceled","payment_intent.payment_failed","charge.refunded",
		"refund.failed","charge.dispute.created","charge.dispute.closed"`
	endpoints := ""
	shop := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", "POST")
		w.WriteHeader(http.StatusMethodNotAllowed)
	}))
	t.Cleanup(shop.Close)
	d := cards(t, "sk_live_1", shop.URL)
	d.Client = shop.Client()
	stripeAccount(t, &d, &endpoints)
	const ofEntries = `,"payment_intent.amount_capturable_updated","setup_intent.succeeded"`
	lacks := "no enabled endpoint of Stripe sends payment_intent.amount_capturable_updated, setup_intent.succeeded to " + shop.URL
	for _, c := range []struct {
		endpoints string
		level     doctor.Level
		want      string
	}{
		{"", doctor.Warning, "cannot be read: read webhook endpoints: "},
		{stripeEndpoint(shop.URL, "enabled", needed), doctor.Error, lacks},
		{stripeEndpoint(shop.URL, "enabled", needed) + "," + stripeEndpoint(shop.URL, "disabled", `"*"`), doctor.Error, lacks},
		{stripeEndpoint(shop.URL, "enabled", needed) + "," + stripeEndpoint("https://other.example", "enabled", `"*"`), doctor.Error, lacks},
		{stripeEndpoint(shop.URL, "enabled", needed+ofEntries), doctor.OK, "Stripe sends every event"},
		{stripeEndpoint(shop.URL, "enabled", `"*"`), doctor.OK, "Stripe sends every event"},
		{stripeEndpoint("https://other.example", "enabled", `"*"`), doctor.Error, "sends charge.dispute.closed, charge.dispute.created, charge.refunded, checkout"},
	} {
		endpoints = c.endpoints
		wants(t, check(t, d), "payments", c.level, c.want)
	}
}

func TestAnAddressThatLeadsElsewhereIsReported(t *testing.T) {
	t.Parallel()
	other := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	d := cards(t, "sk_live_1", other.URL)
	d.Client = other.Client()
	wants(t, check(t, d), "payments", doctor.Error, "which is not this shop: it answered 404")
	other.Close()
	wants(t, check(t, d), "payments", doctor.Warning, "which this host does not reach")
}

func TestKeysThatCannotBeReadAreAnError(t *testing.T) {
	t.Parallel()
	keys := providertest.TestKeys()
	d := deps(t, testdb.PostgresURL(t), testenv.RedisURL(t), "SECKILL_PUBLIC_URL", "http://shop.example.com",
		"payments.alipay.app-id", "2021", "payments.alipay.key", providertest.PrivatePEM(keys.Merchant), "payments.alipay.public-key", "not a key")
	wants(t, check(t, d), "payments", doctor.Error, "a key of a payment provider cannot be read: alipay: public key of Alipay")
}

func TestTheBankThatApprovesEverythingIsAnErrorInProduction(t *testing.T) {
	t.Parallel()
	sandbox := func(value string) []doctor.Finding {
		return check(t, deps(t, testdb.PostgresURL(t), testenv.RedisURL(t), "SECKILL_SANDBOX", value))
	}
	wants(t, sandbox("on"), "payments", doctor.Error, "goods are given away")
	wants(t, sandbox("trial"), "payments", doctor.OK, "every page says so")
}
