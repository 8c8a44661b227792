package config

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// oddities are characters that a password may have and that mislead parsers of addresses.
var oddities = []string{"@", "/", "#", "%", ":", "?", " ", ",", "&", "=", "+", "\\", `"`, "'", "[", "]", "ü", "密", "@ss/w#", "?x=a@", "#@", "/@", "\t"}

// addressSettings are settings that may hold a secret, with a place for it.
var addressSettings = map[string]struct {
	address string
	set     func(*Config, string)
}{
	"SECKILL_DATABASE_URL":       {"postgres://shop:SECRET@db.example:5432/seckill?sslmode=disable", func(c *Config, s string) { c.DatabaseURL = Secret(s) }},
	"SECKILL_DATABASE_URL hosts": {"postgres://shop:SECRET@db.example:5432,other.example:5432/seckill", func(c *Config, s string) { c.DatabaseURL = Secret(s) }},
	"SECKILL_DATABASE_URL query": {"postgres://db.example/seckill?sslmode=disable&password=SECRET", func(c *Config, s string) { c.DatabaseURL = Secret(s) }},
	"SECKILL_REDIS_URL":          {"redis://:SECRET@cache.example:6379/0", func(c *Config, s string) { c.RedisURL = Secret(s) }},
	"SECKILL_REDIS_URL cluster":  {"redis://:SECRET@a.example:6379,b.example:6379", func(c *Config, s string) { c.RedisURL = Secret(s) }},
	"SECKILL_REDIS_URL sentinel": {"redis+sentinel://:SECRET@a.example:26379/shop?sentinel_password=SECRET", func(c *Config, s string) { c.RedisURL = Secret(s) }},
	"SECKILL_SMTP_URL": {"smtp://shop:SECRET@mail.example:587", func(c *Config, s string) {
		c.SMTPURL, c.SMTPFrom, c.PublicURL = Secret(s), "shop@shop.example", "https://shop.example"
	}},
	"SECKILL_MEDIA":                 {"s3://key:SECRET@store.example/bucket?region=eu", func(c *Config, s string) { c.Media = Secret(s) }},
	"SECKILL_TRACES_URL":            {"http://shop:SECRET@traces.example:4318", func(c *Config, s string) { c.TracesURL = Secret(s) }},
	"SECKILL_RISK_URL":              {"https://shop:SECRET@risk.example/ask?token=SECRET", func(c *Config, s string) { c.RiskURL = s }},
	"SECKILL_NOTICE_HOOK_URL":       {"https://shop:SECRET@sms.example/send", func(c *Config, s string) { c.NoticeHookURL, c.NoticeHookSecret = s, "whsec_c2VjcmV0" }},
	"SECKILL_NOTICE_HOOK_URL query": {"https://sms.example/send?key=SECRET", func(c *Config, s string) { c.NoticeHookURL, c.NoticeHookSecret = s, "whsec_c2VjcmV0" }},
	"SECKILL_PUBLIC_URL":            {"https://shop:SECRET@shop.example", func(c *Config, s string) { c.PublicURL = s }},
	"SECKILL_ERROR_REFERENCE":       {"ftp://shop:SECRET@docs.example", func(c *Config, s string) { c.ErrorReference = s }},
	"SECKILL_ALLOWED_ORIGINS":       {"https://shop:SECRET@shop.example/x", func(c *Config, s string) { c.AllowedOrigins = []string{s} }},
	"SECKILL_HTTP_ADDR":             {"https://shop:SECRET@shop.example", func(c *Config, s string) { c.HTTPAddr = s }},
	"captcha.verify_url":            {"https://shop:SECRET@captcha.example/verify?secret=SECRET", func(c *Config, s string) { c.CaptchaVerifyURL, c.CaptchaSiteKey, c.CaptchaSecret = s, "site", "x" }},
	"payments.service.url":          {"https://shop:SECRET@pay.example/v1", func(c *Config, s string) { c.PaymentServiceURL = s }},
	"payments.alipay.api_url":       {"https://shop:SECRET@pay.example/gateway?sign=SECRET", func(c *Config, s string) { c.AlipayAPIURL = s }},
}

func TestNoPartOfAnOddPasswordIsShownAndWhatMisleadsIsRefused(t *testing.T) {
	t.Parallel()
	for name, setting := range addressSettings {
		for _, odd := range oddities {
			password := "Zq1" + odd + "Zq2" + odd + "Zq3"
			address := strings.ReplaceAll(setting.address, "SECRET", password)
			c := Default()
			c.DatabaseURL, c.RedisURL, c.JWTKey = "postgres://localhost/seckill", "redis://localhost:6379/0", key
			setting.set(c, address)
			text := ""
			if err := c.Validate(NeedDatabase, NeedRedis, NeedKeys); err != nil {
				text = err.Error()
			}
			_, parseErr := url.Parse(address)
			if parseErr != nil && !strings.Contains(text, "percent-encode") && setting.address[:5] != "https" && !strings.Contains(name, "REFERENCE") {
				t.Errorf("%s with %q: %q does not say to percent-encode", name, odd, text)
			}
			text += " " + Secret(address).String() + " " + maskValue(address) + " " +
				MaskText("parse "+fmt.Sprintf("%q", address)+": refused")
			if strings.Contains(text, "Zq") {
				t.Errorf("%s with %q shows a part of the password: %s", name, odd, text)
			}
		}
	}
}

func TestTheHostOfAnAddressIsShown(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"postgres://u:p@ss/w#rd@host/db":                                  "postgres://***@host/db",
		"postgres://u:100%@host:5432/db?sslmode=require":                  "postgres://***@host:5432/db?sslmode=require",
		"redis://:p,w@h:1/0":                                              "redis://***@h:1/0",
		"redis://:a@h:1,h2:2":                                             "redis://***@h:1,h2:2",
		"s3://key:a/b+c@store.example/bucket":                             "s3://***@store.example/bucket",
		"https://sms.example/send?token=abc":                              "https://sms.example/send?***",
		"redis+sentinel://:p w@h:1/m?sentinel_password=a@b":               "redis+sentinel://***",
		"//8xyz/0123456789abcdef0123456789abcdef":                         "***",
		"host=db.example password=hunter2":                                "***",
		"https://docs.example/errors":                                     "https://docs.example/errors",
		"postgres://db.example/seckill?sslmode=disable&password=a&b=c&d#": "postgres://***",
	} {
		if got := Secret(address).String(); got != want {
			t.Errorf("%s is shown as %s, want %s", address, got, want)
		}
	}
	for text, want := range map[string]string{
		`invalid proxy address "http://u:p@ss/w#rd@proxy:3128": parse`:       `invalid proxy address "http://***@proxy:3128": parse`,
		"Post \"https://u:p@a.example/v1?key=abc\": EOF":                     "Post \"https://***@a.example/v1?***\": EOF",
		"dial redis://:a@h:1: refused":                                       "dial redis://***@h:1: refused",
		"write postgres://user:password@host:5432/seckill?sslmode=require":   "write postgres://user:password@host:5432/seckill?sslmode=require",
		"listens at http://127.0.0.1:8080, and https://*.check.example, too": "listens at http://127.0.0.1:8080, and https://*.check.example, too",
	} {
		if got := MaskText(text); got != want {
			t.Errorf("%s is masked as %s, want %s", text, got, want)
		}
	}
}

func TestASecretInTheWrongPlaceIsNotPrinted(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{
		"without quotes":    "jwt_key = HunterTwo",
		"an odd escape":     `database_url = "postgres://u:Hunter\wTwo@h/d"`,
		"a quote inside":    `jwt_key = "x"HunterTwo"`,
		"a number":          "jwt_key = 1234567890123456789012345678901234567890",
		"without equals":    "jwt_key HunterTwo",
		"address for a set": `database_pool = "postgres://u:Hunter@Two@h/d"`,
	} {
		_, _, err := Parse([]string{"--config", write(t, file)}, env())
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		if text := MaskText(err.Error()); strings.Contains(text, "Hunter") || strings.Contains(text, "Two") || strings.Contains(text, "1234567890") {
			t.Errorf("%s: %s", name, text)
		}
	}
	for _, value := range []string{"HunterTwo", "postgres://u:Hunter@Two/d"} {
		_, _, err := Parse(nil, env("SECKILL_DATABASE_URL_FILE", value))
		if err == nil || strings.Contains(err.Error(), "Hunter") {
			t.Errorf("a secret instead of its file: %v", err)
		}
	}
}
