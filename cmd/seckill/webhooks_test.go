package main

import (
	"strings"
	"testing"
)

func TestWebhooksAreManagedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	environ := services(t)
	run := func(args ...string) string {
		t.Helper()
		got := command(t, environ, append([]string{"webhooks"}, args...)...)
		got.wants(t, exitOK)
		return got.stdout
	}
	refused := func(complaint string, args ...string) {
		t.Helper()
		command(t, environ, append([]string{"webhooks"}, args...)...).wants(t, exitUnfit, complaint)
	}
	made := strings.Fields(run("add", "--url", "https://erp.example.com/seckill", "--events", "order.paid,stock.low"))
	if len(made) != 2 || !strings.HasPrefix(made[0], "whe_") || !strings.HasPrefix(made[1], "whsec_") {
		t.Fatalf("add printed %q, want id and secret", made)
	}
	if list := run("list"); !strings.Contains(list, "order.paid,stock.low") || !strings.Contains(list, "enabled") || strings.Contains(list, "whsec_") {
		t.Errorf("list: %s", list)
	}
	if secret := strings.TrimSpace(run("rotate", made[0])); secret == made[1] || !strings.HasPrefix(secret, "whsec_") {
		t.Errorf("rotate printed %q", secret)
	}
	run("update", made[0], "--disable", "--events", "all")
	if list := run("list"); !strings.Contains(list, "disabled") || !strings.Contains(list, "all") {
		t.Errorf("list after a change: %s", list)
	}
	if log := run("deliveries", made[0], "--state", "given_up"); log != "" {
		t.Errorf("deliveries: %s", log)
	}
	refused("--url: needs https", "add", "--url", "http://erp.example.com/")
	refused("--url: needs public address", "add", "--url", "https://169.254.169.254/")
	refused(`--events "order.sold": choose from`, "add", "--url", "https://erp.example.com/", "--events", "order.sold")
	refused("starts with whe_", "remove", "usr_1")
	refused("there is none with that id", "replay", "dlv_01jd8z3q4vftn8r2m5w6x7y8z9")
	run("remove", made[0])
	refused("there is none with that id", "remove", made[0])
	log := command(t, environ, "user", "log")
	log.wants(t, exitOK)
	if !strings.Contains(log.stdout, "WEBHOOK_ENDPOINT_CHANGED") {
		t.Errorf("the security log lacks the changes: %s", log.stdout)
	}
}
