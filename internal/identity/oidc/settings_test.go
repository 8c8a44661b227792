package oidc_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"seckill/internal/identity/oidc"
	"seckill/internal/platform/config"
)

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "seckill.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTablesOfTheFileOfSettingsNameProviders(t *testing.T) {
	t.Parallel()
	file := write(t, `profile = "development"

[oidc.zeta]
title = "Zeta"
issuer = "https://zeta.example"
client_id = "shop"

[oidc.apple]
issuer = "https://appleid.apple.com"
client_id = "com.example.shop"

[oidc.entra]
issuer = "https://login.microsoftonline.com/8d3b0a6c-0000-4000-8000-000000000000/v2.0"
client_id = "shop"
token_auth = "post"
role_claim = "groups"
roles = { staff = "OPERATOR" }
`)
	cfg, _, err := config.Parse([]string{"--config", file}, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	if cfg.OIDC != file {
		t.Fatalf("the file of providers is %q, want the file of settings", cfg.OIDC)
	}
	list, err := oidc.ReadProviders(cfg.OIDC, false)
	if err != nil {
		t.Fatal(err)
	}
	if names := []string{list[0].Name, list[1].Name, list[2].Name}; !slices.Equal(names, []string{"zeta", "apple", "entra"}) {
		t.Errorf("providers %v are not in the order of the file", names)
	}
	zeta, apple, entra := list[0], list[1], list[2]
	if zeta.ResponseMode != "query" || zeta.VerifiedClaim != "email_verified" || zeta.TokenAuth != "" || !slices.Equal(zeta.Scopes, []string{"email", "profile"}) {
		t.Errorf("defaults: %+v", zeta)
	}
	if apple.ResponseMode != "form_post" || apple.TokenAuth != "post" || !slices.Equal(apple.Scopes, []string{"email", "name"}) {
		t.Errorf("Apple: %+v", apple)
	}
	if entra.VerifiedClaim != "xms_edov" || entra.TokenAuth != "post" || entra.Roles["staff"] != "OPERATOR" {
		t.Errorf("Microsoft: %+v", entra)
	}
}

func TestSettingsOfProvidersThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	const good = "issuer = \"https://login.example\"\nclient_id = \"shop\"\n"
	for name, c := range map[string]struct{ text, want string }{
		"unknown key":        {"[oidc.a]\n" + good + "trustEmail = true\n", "there is no setting oidc.a.trustEmail"},
		"response mode":      {"[oidc.a]\n" + good + "response_mode = \"fragment\"\n", "responseMode: needs query or form_post"},
		"token auth":         {"[oidc.a]\n" + good + "token_auth = \"jwt\"\n", "tokenAuth: needs basic or post"},
		"tenants of all":     {"[oidc.a]\nissuer = \"https://login.microsoftonline.com/common/v2.0\"\nclient_id = \"shop\"\n", "for all tenants"},
		"name of a provider": {"[oidc.\"A b\"]\n" + good, "name: needs 1 to 32 characters"},
		"no client":          {"[oidc.a]\nissuer = \"https://login.example\"\n", "clientId: is missing"},
		"no providers":       {"profile = \"production\"\n", "needs a JSON array of providers, or tables [oidc.NAME]"},
		"JSON, unknown key":  {`[{"name": "a", "trust": true}]`, "unknown field"},
		"twice in JSON":      {`[{"name": "a", "issuer": "https://a.example", "clientId": "s"}, {"name": "a", "issuer": "https://a.example", "clientId": "s"}]`, "two entries are named a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := oidc.ReadProviders(write(t, c.text), false)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}
