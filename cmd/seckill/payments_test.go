package main

import (
	"testing"
	"time"
)

func TestPaymentsAreComparedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	environ := append(services(t), "SECKILL_SANDBOX=trial")
	command(t, environ, "migrate", "up").wants(t, exitOK)
	today := time.Now().UTC().Format(time.DateOnly)
	command(t, environ, "payments", "reconcile", "--provider", "sandbox", "--day", today).wants(t, exitOK, "")
	command(t, environ, "payments", "reconcile", "--provider", "sandbox", "--day", today, "--json").wants(t, exitOK)
	command(t, environ, "payments", "reconcile", "--provider", "elsewhere", "--day", today).wants(t, exitUnfit, "no payment provider \"elsewhere\"")
	command(t, environ, "payments", "reconcile", "--provider", "sandbox", "--day", "today").wants(t, exitUnfit, "--day")
}
