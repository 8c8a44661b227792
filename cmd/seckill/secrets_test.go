package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// secretSettings are files of settings that hold a secret, SECRET, in addresses that lead nowhere
// or alone.
var secretSettings = []string{
	`smtp_from = 'shop@shop.example'
smtp_url = 'smtp://shop:SECRET@127.0.0.1:1'
smtp_password = 'SECRET'
media = 's3://key:SECRET@127.0.0.1:1/bucket'
traces_url = 'http://shop:SECRET@127.0.0.1:1'
public_url = 'https://shop:SECRET@127.0.0.1:1'
risk_url = 'http://127.0.0.1:1/ask?key=SECRET'
allowed_origins = ['https://shop:SECRET@shop.example']
notice_hook_url = 'https://shop:SECRET@127.0.0.1:1/send'
notice_hook_secret = 'SECRET'
jwt_key = 'SECRET'
jwt_previous_keys = ['old=SECRET']
push_private_key = 'SECRET'
database_url = 'postgres://shop:SECRET@127.0.0.1:1/x?sslmode=disable'
redis_url = 'redis://:SECRET@127.0.0.1:1/0'
[captcha]
verify_url = 'https://127.0.0.1:1/verify?key=SECRET'
secret = 'SECRET'
[payments.stripe]
key = 'sk_SECRET'
webhook_secret = 'SECRET'
[payments.alipay]
key = 'SECRET'
public_key = 'SECRET'
api_url = 'https://shop:SECRET@127.0.0.1:1/x'
[payments.wechat]
merchant_key = 'SECRET'
api_key = 'SECRET'
platform_key = 'SECRET'
[payments.service]
url = 'https://shop:SECRET@127.0.0.1:1/pay'
secret = 'SECRET'
`,
	"database_url = 'postgres://shop:SECRET@127.0.0.1:1,127.0.0.1:2/x?sslmode=disable'\nredis_url = 'redis://:SECRET@127.0.0.1:1,127.0.0.1:2'",
	"database_url = 'postgres://127.0.0.1:1/x?sslmode=disable&password=SECRET'\nredis_url = 'redis+sentinel://:SECRET@127.0.0.1:1/shop?sentinel_password=SECRET'",
	"database_url = 'host=127.0.0.1 port=1 password=SECRET'\nlog_level = 'postgres://shop:SECRET@127.0.0.1:1/x'\ndatabase_pool = 'redis://shop:SECRET@127.0.0.1:1/x'",
	"database_url_file = 'postgres://shop:SECRET@127.0.0.1:1/x'\njwt_key_file = 'SECRET'",
}

func TestNoCommandPrintsAPartOfASecret(t *testing.T) {
	t.Parallel()
	for i, setting := range secretSettings {
		for _, password := range []string{"Zq1@Zq2/Zq3#Zq4", "Zq1%Zq2?Zq3:Zq4", "Zq1 Zq2密Zq3", "Zq1%40Zq2%2FZq3"} {
			file := filepath.Join(t.TempDir(), "seckill.toml")
			text := strings.ReplaceAll(setting, "SECRET", password)
			if !strings.Contains(setting, "jwt_key") {
				text = "jwt_key = '0123456789abcdef0123456789abcdef'\n" + text
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"config", "print", "--json"}, {"serve"}, {"doctor"}} {
				got := command(t, []string{"SECKILL_CONFIG=" + file}, args...)
				if out := got.stdout + got.stderr; strings.Contains(out, "Zq") || out == "" {
					t.Errorf("file %d with %s: %s prints a part of it:\n%.600s", i, password, strings.Join(args, " "), out[max(0, strings.Index(out, "Zq")-200):])
				}
			}
		}
	}
}

func TestPasswordsThatMisleadParsersAreToBePercentEncoded(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"serve"}, {"migrate", "up"}, {"doctor"}} {
		got := command(t, []string{"SECKILL_DATABASE_URL=postgres://u:p@ss/w#rd@host/db", "SECKILL_REDIS_URL=redis://127.0.0.1:1"}, args...)
		out := got.stdout + got.stderr
		if got.code == exitOK || !strings.Contains(out, "SECKILL_DATABASE_URL cannot be read: percent-encode the password in it") ||
			strings.Contains(out, "w#rd") || strings.Contains(out, "ss/w") || strings.Contains(out, "no such host") {
			t.Errorf("%s: exit %d\n%s", args, got.code, out)
		}
	}
	got := command(t, nil, "serve", "--database-url", "postgres://u:my", "Zq@host/db")
	if got.wants(t, exitUnfit, "unexpected argument …"); strings.Contains(got.stderr, "Zq") {
		t.Errorf("the rest of an address is printed: %s", got.stderr)
	}
}
