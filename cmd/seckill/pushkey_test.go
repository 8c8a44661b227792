package main

import (
	"strings"
	"testing"

	"seckill/internal/platform/config"
)

func TestAPushKeyIsPrintedAloneForAFile(t *testing.T) {
	t.Parallel()
	got := command(t, nil, "push-key")
	private := config.Secret(strings.TrimSpace(got.stdout))
	public, err := config.PushPublicKey(private)
	if err != nil {
		t.Fatal(err)
	}
	got.wants(t, exitOK, "public key: "+public)
	if again := command(t, nil, "push-key"); again.stdout == got.stdout {
		t.Error("two calls print the same key")
	}
}
