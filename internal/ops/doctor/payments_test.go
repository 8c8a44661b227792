package doctor_test

import (
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
	live := check(t, d)
	wants(t, live, "payments", doctor.OK, "checkout.session and refund events to "+shop.URL+"/webhooks/payments/stripe, which leads to this shop")
	for _, f := range live {
		if strings.Contains(f.Message, "no payment provider") {
			t.Errorf("finding %+v", f)
		}
	}
	trial := check(t, cards(t, "sk_test_1", "http://shop.example.com"))
	wants(t, trial, "payments", doctor.Warning, "payments.stripe.key is a key of test mode")
	wants(t, trial, "payments", doctor.Warning, "SECKILL_PUBLIC_URL is not https")
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
