package webhook_test

import (
	"net/netip"
	"strings"
	"testing"

	"seckill/internal/outbox/webhook"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

func TestEventsGoToPublicAddressesOnly(t *testing.T) {
	t.Parallel()
	for _, private := range []string{
		"127.0.0.1:80", "10.1.2.3:443", "172.16.0.1:443", "192.168.1.1:443", "169.254.169.254:80", "0.0.0.0:80", "100.64.0.1:443",
		"198.18.0.1:443", "224.0.0.1:443", "255.255.255.255:443", "240.0.0.1:443",
		"[::1]:80", "[::]:80", "[fe80::1%eth0]:80", "[fd00::1]:80", "[ff02::1]:80", "[::ffff:127.0.0.1]:80", "[::ffff:10.0.0.1]:80",
		"[64:ff9b::7f00:1]:80", "[2002:7f00:1::]:80", "[::7f00:1]:80",
		"192.0.0.8:80", "192.31.196.1:80", "192.52.193.1:80", "192.88.99.1:80", "192.175.48.1:80", "192.0.2.1:80", "198.51.100.1:80", "203.0.113.1:80",
		"[64:ff9b:1::1]:80", "[100::1]:80", "[100:0:0:1::1]:80", "[2001::1]:80", "[2001:2::1]:80", "[2001:10::1]:80", "[2001:20::1]:80",
		"[2001:1ff::1]:80", "[2001:db8::1]:80", "[2620:4f:8000::1]:80", "[3fff::1]:80", "[5f00::1]:80", "[fec0::1]:80", "[4000::1]:80",
	} {
		if webhook.Allows(private) {
			t.Errorf("%s counts as public", private)
		}
	}
	for _, public := range []string{"93.184.215.14:443", "[2606:2800:21f:cb07:6820:80da:af6b:8b2c]:443"} {
		if !webhook.Allows(public) {
			t.Errorf("%s does not count as public", public)
		}
	}
	if ten := netip.MustParsePrefix("10.0.0.0/8"); !webhook.Allows("10.1.2.3:443", ten) || webhook.Allows("127.0.0.1:443", ten) {
		t.Error("the setting allows other networks than its own")
	}
}

// TestANameIsCheckedWhenItIsResolved uses a name that is not known to be private before.
func TestANameIsCheckedWhenItIsResolved(t *testing.T) {
	t.Parallel()
	e := setup(t)
	r := newReceiver(t)
	strict := webhook.New(webhook.Config{DB: e.db, Keys: testenv.Keys(t), Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Outbox: e.outbox, Clock: e.clock, Log: quiet})
	address := strings.Replace(r.server.URL, "127.0.0.1", "localhost", 1)
	endpoint, _, err := strict.Create(t.Context(), id.User{}, webhook.EndpointInput{URL: &address})
	e.must(err)
	e.fact(webhook.OrderPlaced, "ord_a", 1)
	e.must(strict.Step(t.Context()))
	if d := e.deliveries(endpoint)[0]; r.attempts() != 0 || !strings.Contains(d.Error, "not public") {
		t.Errorf("a name that leads to this host received %d requests: %+v", r.attempts(), d)
	}
}

func TestAnEndpointNeedsAUsableAddress(t *testing.T) {
	t.Parallel()
	e := setup(t)
	strict := webhook.New(webhook.Config{DB: e.db, Keys: testenv.Keys(t), Clock: e.clock, Log: quiet})
	for _, bad := range []string{
		"", "shop.example.com", "/hooks", "http://shop.example.com/hooks", "ftp://shop.example.com/", "https://user:pw@shop.example.com/",
		"https://127.0.0.1/", "https://[::1]/", "https://169.254.169.254/latest", "https://shop.example.com/#x", "https:///x",
	} {
		if _, _, err := strict.Create(t.Context(), id.User{}, webhook.EndpointInput{URL: &bad}); fault.ReasonOf(err) != fault.InvalidInput {
			t.Errorf("%q: %v, want it refused", bad, err)
		}
	}
	good := "https://shop.example.com/hooks"
	for range 20 {
		_, _, err := strict.Create(t.Context(), id.User{}, webhook.EndpointInput{URL: &good})
		e.must(err)
	}
	if _, _, err := strict.Create(t.Context(), id.User{}, webhook.EndpointInput{URL: &good}); fault.ReasonOf(err) != fault.Conflict {
		t.Errorf("the 21st endpoint: %v", err)
	}
}
