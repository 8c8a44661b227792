package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"seckill/internal/ops/doctor"
	"seckill/internal/pay/payment/providertest"
)

// wrongSettings are settings that a server refuses, and a part of its message. FOLDER is a folder with
// the files of wrongFiles.
var wrongSettings = map[string]string{
	"path_ttl = '60ns'":                        "SECKILL_PATH_TTL is 60ns",
	"path_ttl = 'soon'":                        "path_ttl: ",
	"profile = 'test'":                         "profile: ",
	"limits = 'off'\nprofile = 'production'":   "SECKILL_LIMITS is off",
	"jwt_key = 'short'":                        "SECKILL_JWT_KEY is unfit",
	"jwt_key_file = 'FOLDER/none'":             "jwt_key_file: no such file",
	"database_url_file = 'FOLDER/none'":        "database_url_file: no such file",
	"redis_url = 'http://127.0.0.1'":           "SECKILL_REDIS_URL is not an address of Redis",
	"public_url = 'shop'":                      "SECKILL_PUBLIC_URL is ",
	"public_url = 'https://u:p@ss/w#rd@h'":     "SECKILL_PUBLIC_URL is ",
	"risk_url = 'risk'":                        "SECKILL_RISK_URL is no address",
	"smtp_url = 'smtp://u:p w@h'":              "SECKILL_SMTP_URL cannot be read: percent-encode",
	"media = 's3://k:s@host'":                  "SECKILL_MEDIA names no bucket",
	"media = 'FOLDER/text'":                    "SECKILL_MEDIA: folder for pictures: ",
	"media = 's3://k:s@h ost/b'":               "SECKILL_MEDIA cannot be read: percent-encode",
	"oidc = 'FOLDER/none'":                     "SECKILL_OIDC: stat ",
	"oidc = 'FOLDER/text'":                     "SECKILL_OIDC: ",
	"oidc = 'FOLDER/fields.json'":              `unknown field "colour"`,
	"oidc = 'FOLDER/roles.json'":               `"BOSS" is no role`,
	"oidc = 'FOLDER/secret.json'":              "nowhere: no such file",
	"oidc = 'FOLDER/client.json'":              "clientId: is missing",
	"[oidc.staff]\nissuer = 'https://a.test'":  "clientId: is missing",
	"[oidc.staff]\ncolour = 'red'":             "there is no setting oidc.staff.colour",
	"token_issuers = 'FOLDER/none'":            "SECKILL_TOKEN_ISSUERS: stat ",
	"token_issuers = 'FOLDER/audience.json'":   "audience: is missing",
	"trusted_documents = 'FOLDER/none'":        "SECKILL_TRUSTED_DOCUMENTS: ",
	"trusted_documents = 'FOLDER/unfit.json'":  "SECKILL_TRUSTED_DOCUMENTS: ",
	"rate_limits = ['cook=5/5s']":              `SECKILL_RATE_LIMITS: "cook" has no rate limit`,
	"[shop]\nlogo = 'FOLDER/none.svg'":         "shop.logo: ",
	"[shop]\nlogo = 'FOLDER/text.png'":         "shop.logo: ",
	"[shop]\naccent = '#ff6a00'":               "shop.accent is #ff6a00",
	"[payments.stripe]\nkey = 'sk_1'":          "payments.stripe.webhook_secret and payments.stripe.key go together",
	"[payments.service]\nurl = 'https://a.ex'": "payments.service.secret is not whsec_",
	"[payments.service]\nurl = 'https://a.ex'\nsecret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'\ncurrencies = 'EUR'": "payments.service.currencies has an entry",
	"[payments.alipay]\napp_id = '1'\nkey = 'x'\npublic_key = 'x'":                                                    "payments: alipay: ",
	"[payments.wechat]\nmerchant_id = '1'\napp_id = 'x'\nmerchant_serial = 'x'\nmerchant_key = 'x'\n" +
		"api_key = '0123456789abcdef0123456789abcdef'\nplatform_key = 'x'": "payments: WeChat Pay: ",
	"[payments.alipay]\napp_id = '1'\nkey = '''" + providertest.PrivatePEM(providertest.TestKeys().Merchant) + "'''\npublic_key = 'x'": "public key of Alipay",
	"allowed_origins = ['shop']":                   `SECKILL_ALLOWED_ORIGINS has "shop"`,
	"trusted_proxies = ['shop']":                   "trusted_proxies: ",
	"database_pool = 1":                            "SECKILL_DATABASE_POOL is 1",
	"database_url = 'postgres://a/b?sslmode=some'": "SECKILL_DATABASE_URL has an unknown sslmode",
	"hsts_subdomains = 'some'":                     "hsts_subdomains: ",
	"staff_totp = 'some'":                          "staff_totp: ",
	"two_person_money = -1":                        "SECKILL_TWO_PERSON_MONEY is -1",
	"phone_country = 'cn'":                         `SECKILL_PHONE_COUNTRY is "cn"`,
	"traces_share = 2":                             "SECKILL_TRACES_SHARE is 2",
	"error_reference = 'pages'":                    `SECKILL_ERROR_REFERENCE is "pages"`,
	"[shop]\nstorefront = 'shop'":                  "shop.storefront is ",
	"[captcha]\nverify_url = 'https://a.example'":  "captcha.verify_url is set without",
	"no_such_key = 1":                              `there is no setting "no_such_key"`,
}

var wrongFiles = map[string]string{
	"text": "no settings", "text.png": "no picture",
	"fields.json":   `[{"name":"a","issuer":"https://a.test","clientId":"1","colour":"red"}]`,
	"roles.json":    `[{"name":"a","issuer":"https://a.test","clientId":"1","roleClaim":"g","roles":{"x":"BOSS"}}]`,
	"secret.json":   `[{"name":"a","issuer":"https://a.test","clientId":"1","clientSecretFile":"nowhere"}]`,
	"client.json":   `[{"name":"a","issuer":"https://a.test"}]`,
	"audience.json": `[{"issuer":"https://a.test","jwks":"https://a.test/keys"}]`,
	"unfit.json":    `{"1": "{ nothing }"}`,
}

// rightSettings are values that a server accepts.
var rightSettings = []string{
	"oidc = 'FOLDER/right.json'", "media = 'FOLDER/new/pictures'", "rate_limits = ['login=5/5s']",
	"trusted_documents = 'FOLDER/right-documents.json'",
	"[payments.service]\nurl = 'https://a.ex'\nsecret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'",
}

// installed writes a file of settings on the services of the test and returns its environment.
func installed(t *testing.T, environ []string, setting string) []string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range wrongFiles {
		write(t, filepath.Join(folder, name), text)
	}
	write(t, filepath.Join(folder, "right.json"), `[{"name":"a","issuer":"https://a.test","clientId":"1"}]`)
	write(t, filepath.Join(folder, "right-documents.json"), `{"1": "{ __typename }"}`)
	file := filepath.Join(folder, "seckill.toml")
	write(t, file, strings.ReplaceAll(setting, "FOLDER", folder))
	out := []string{"SECKILL_CONFIG=" + file, "SECKILL_HTTP_ADDR=127.0.0.1:0", "SECKILL_ADMIN_ADDR=127.0.0.1:0"}
	if strings.HasPrefix(setting, "[oidc.") {
		out = append(out, "SECKILL_OIDC="+file)
	}
	for _, entry := range environ { // the variables of the services, unless the file has the setting
		name, _, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(entry, "SECKILL_")), "=")
		if !strings.Contains(setting, name) {
			out = append(out, entry)
		}
	}
	return out
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// doctorErrors returns the errors of a doctor.
func doctorErrors(t *testing.T, got answer) (lines []string) {
	t.Helper()
	var report struct{ Findings []doctor.Finding }
	if err := json.Unmarshal([]byte(got.stdout), &report); err != nil { // it refused to begin, as each command
		return strings.Split(strings.TrimSpace(strings.ReplaceAll(got.stderr, "seckill: ", "")), "\n")
	}
	for _, f := range report.Findings {
		if f.Level == doctor.Error && !strings.HasPrefix(f.Message, "fsync is off") {
			lines = append(lines, f.Message)
		}
	}
	return lines
}

func TestDoctorAndServeRefuseTheSameSettingsWithTheSameWords(t *testing.T) {
	t.Parallel()
	// no service answers there: a server that came so far would say so
	away := []string{"SECKILL_DATABASE_URL=postgres://127.0.0.1:1/x?sslmode=disable", "SECKILL_REDIS_URL=redis://127.0.0.1:1/0", "SECKILL_JWT_KEY=" + key}
	for setting, want := range wrongSettings {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			environ := installed(t, away, setting)
			served, checked := command(t, environ, "serve"), command(t, environ, "doctor", "--json")
			if served.wants(t, exitUnfit, want); checked.code == exitOK {
				t.Errorf("the doctor is green:\n%s", checked.stdout)
			}
			errors := doctorErrors(t, checked)
			for line := range strings.Lines(served.stderr) {
				line = strings.TrimPrefix(strings.TrimSpace(line), "seckill: ")
				if !slices.Contains(errors, line) {
					t.Errorf("serve says %q, the doctor %q", line, errors)
				}
			}
		})
	}
}

func TestDoctorAndServeAcceptTheSameSettings(t *testing.T) {
	t.Parallel()
	environ := services(t)
	for _, setting := range rightSettings {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			environ := installed(t, environ, setting)
			if got := doctorErrors(t, command(t, environ, "doctor", "--json")); len(got) > 0 {
				t.Errorf("the doctor says %q", got)
			}
			if lines := logged(t, environ); len(saying(lines, "listening")) != 1 {
				t.Errorf("the server does not start: %v", lines)
			}
		})
	}
}
