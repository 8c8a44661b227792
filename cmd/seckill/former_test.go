package main

import (
	"strings"
	"testing"
)

func TestAnOldNameOfASettingIsReportedOnceByEveryCommand(t *testing.T) {
	t.Parallel()
	environ := []string{
		"SECKILL_JWT_KEY=" + key, "SECKILL_DATABASE_URL=postgres://127.0.0.1:1/x?sslmode=disable", "SECKILL_REDIS_URL=redis://127.0.0.1:1/0",
		"SECKILL_REQUEST_TIMEOUT=100ms", "SECKILL_DRAIN_DELAY=1s",
	}
	for _, args := range [][]string{{"config", "print"}, {"doctor"}, {"serve"}} {
		got := command(t, environ, args...)
		if said := got.stdout + got.stderr; strings.Count(said, "SECKILL_DRAIN_DELAY is no longer a setting and is ignored") != 1 || strings.Contains(said, "DELAY is no setting") {
			t.Errorf("%s:\n%s", args, said)
		}
	}
}
