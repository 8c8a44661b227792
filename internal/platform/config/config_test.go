package config

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const key = "0123456789abcdef0123456789abcdef"

func env(pairs ...string) func(string) (string, bool) {
	values := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
	}
	return func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "settings.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func find(t *testing.T, settings []Setting, flag string) Setting {
	t.Helper()
	for _, s := range settings {
		if s.Flag == flag {
			return s
		}
	}
	t.Fatalf("no setting %q", flag)
	return Setting{}
}

func TestDefaultsArePublishedOnes(t *testing.T) {
	t.Parallel()
	c := Default()
	want := &Config{
		Profile: ProfileProduction, LogLevel: slog.LevelInfo, LogFormat: LogAuto,
		DatabasePool: 16, RedisPrefix: "sk:",
		HTTPAddr: ":8080", AdminAddr: "127.0.0.1:9090", RequestTimeout: DefaultRequestTimeout, MaxSockets: 20000,
		DatabasePooling: PoolingSession, Documents: DocumentsAny, Introspection: IntrospectionAuto, Playground: AutoSwitchAuto, HSTSSubdomains: SwitchOff,
		DrainTimeout:   20 * time.Second,
		AccessTokenTTL: 10 * time.Minute, RefreshTokenTTL: 30 * time.Minute, StaffTOTP: StaffTOTPOptional,
		PaymentWindow: 15 * time.Minute, PathTTL: time.Minute,
		PermitRatio: 1.5, PowMax: 100000, RiskTimeout: 50 * time.Millisecond, RiskFailure: "open",
		WaitlistOffer: time.Minute, DrawRelays: []string{"https://api.drand.sh", "https://drand.cloudflare.com"}, TwoPersonUnits: 100, TwoPersonExtension: 30 * time.Minute, TwoPersonMoney: 1_000_000, Limits: SwitchOn,
		Mail: Mail{SMTPTLS: SMTPTLSRequired}, Notice: Notice{NoticeDeadline: 3 * time.Minute, NoticeOpening: 10 * time.Minute},
		Providers: Providers{
			StripeScriptURL: "https://js.stripe.com/dahlia/stripe.js", StripeOrigins: []string{"https://*.js.stripe.com", "https://hooks.stripe.com", "https://api.stripe.com"},
			Sandbox: SandboxOff, WeChatH5: SwitchOff, AlipayWAP: SwitchOff,
			PaymentServiceName: "service", PaymentServiceLabel: "Bank transfer", PaymentServiceKind: "redirect",
		},
		Shop: Shop{SellerTaxName: "VAT"}, TracesShare: 0.01,
	}
	if diff := cmp.Diff(want, c, cmpopts.EquateComparable(netip.Prefix{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	if err := c.Validate(); err != nil {
		t.Errorf("the defaults do not validate: %v", err)
	}
}

func TestFlagsWinOverEnvironmentOverFileOverDefault(t *testing.T) {
	t.Parallel()
	file := write(t, `
http_addr = ":1111"
admin_addr = ":1112"
path_ttl = "70s"
two-person-units = 99
trusted_proxies = ["10.0.0.0/8", "fd00::/8"]
permit_ratio = 1.25
`)
	c, settings, err := Parse(
		[]string{"--config", file, "--http-addr", ":3333"},
		env("SECKILL_HTTP_ADDR", ":2222", "SECKILL_ADMIN_ADDR", ":2223", "SECKILL_PROFILE", "development"),
	)
	if err != nil {
		t.Fatal(err)
	}
	got := []any{c.HTTPAddr, c.AdminAddr, c.PathTTL, c.TwoPersonUnits, len(c.TrustedProxies), c.PermitRatio, c.WaitlistOffer, c.Profile}
	want := []any{":3333", ":2223", 70 * time.Second, 99, 2, 1.25, time.Minute, ProfileDevelopment}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	for flag, origin := range map[string]Origin{
		"http-addr": OriginFlag, "admin-addr": "SECKILL_ADMIN_ADDR", "path-ttl": Origin(file), "waitlist-offer": OriginDefault,
		"config": OriginFlag,
	} {
		if got := find(t, settings, flag).Origin; got != origin {
			t.Errorf("%s comes from %q, want %q", flag, got, origin)
		}
	}
}

func TestAProxyMayBeAnAddressOrANetwork(t *testing.T) {
	t.Parallel()
	c, _, err := Parse(nil, env("SECKILL_TRUSTED_PROXIES", "10.0.0.7, 10.1.0.0/16,fd00::1"))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(c.TrustedProxies); got != "[10.0.0.7/32 10.1.0.0/16 fd00::1/128]" {
		t.Errorf("proxies %s", got)
	}
}

func TestSecretsMayBeInFiles(t *testing.T) {
	t.Parallel()
	key, previous := write(t, strings.Repeat("k", 32)+"\n"), write(t, "one=first\ntwo=second\n")
	c, settings, err := Parse(nil, env("SECKILL_JWT_KEY_FILE", key, "SECKILL_JWT_PREVIOUS_KEYS_FILE", previous))
	if err != nil {
		t.Fatal(err)
	}
	if c.JWTKey.Reveal() != strings.Repeat("k", 32) || len(c.JWTPreviousKeys) != 2 || c.JWTPreviousKeys[1].Reveal() != "two=second" {
		t.Errorf("key of %d bytes, %d previous keys", len(c.JWTKey), len(c.JWTPreviousKeys))
	}
	pem := "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----"
	file := write(t, "[payments.alipay]\nkey_file = '"+write(t, pem+"\n")+"'\n")
	if c, settings, err := Parse([]string{"--config", file}, env()); err != nil || c.AlipayKey.Reveal() != pem || find(t, settings, "payments.alipay.key").Origin != Origin(file+": payments.alipay.key_file") {
		t.Errorf("a key of several lines: %v", err)
	}
	both := write(t, "[payments.stripe]\nkey = 'sk_1'\nkey_file = '"+key+"'\n")
	if _, _, err := Parse([]string{"--config", both}, env()); err == nil || err.Error() != both+": payments.stripe.key and "+both+": payments.stripe.key_file are both set: unset one" {
		t.Errorf("a key and its file: %v", err)
	}
	if origin := find(t, settings, "jwt-key").Origin; origin != "SECKILL_JWT_KEY_FILE" {
		t.Errorf("the key comes from %q", origin)
	}
	for want, pairs := range map[string][]string{
		"SECKILL_JWT_KEY and SECKILL_JWT_KEY_FILE are both set": {"SECKILL_JWT_KEY", "x", "SECKILL_JWT_KEY_FILE", key},
		"SECKILL_REDIS_URL_FILE: ":                              {"SECKILL_REDIS_URL_FILE", "/does/not/exist"},
	} {
		if _, _, err := Parse(nil, env(pairs...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if got := UnknownVariables([]string{"SECKILL_JWT_KEY_FILE=x", "SECKILL_HTTP_ADDR_FILE=x"}); !slices.Equal(got, []string{"SECKILL_HTTP_ADDR_FILE"}) {
		t.Errorf("unknown: %q", got)
	}
}

func TestFileIsNamedByTheEnvironmentToo(t *testing.T) {
	t.Parallel()
	c, _, err := Parse(nil, env("SECKILL_CONFIG", write(t, `http_addr = ":4444"`)))
	if err != nil {
		t.Fatal(err)
	}
	if c.HTTPAddr != ":4444" {
		t.Errorf("http-addr is %q", c.HTTPAddr)
	}
}

func TestEveryMistakeIsOneLineWithItsPlace(t *testing.T) {
	t.Parallel()
	file := write(t, "path_ttl = 60\nhtp_addr = \":1\"\n[limits]\nx = 1\n")
	_, _, err := Parse([]string{"--config", file}, env("SECKILL_PAYMENT_WINDOW", "soon", "SECKILL_PROFILE", "test", "SECKILL_LOG_LEVEL", "loud"))
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 6 {
		t.Errorf("%d lines, want 6:\n%v", len(lines), err)
	}
	for _, want := range []string{
		`there is no setting "htp_addr"; the nearest is "http_addr"`, "limits must be one value", file + ": path_ttl:",
		"SECKILL_PAYMENT_WINDOW: ", `SECKILL_PROFILE: "test" is not one of production, development`, "SECKILL_LOG_LEVEL: ",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
}

func TestAnUnknownKeyOfATableIsRefusedWithTheNearest(t *testing.T) {
	t.Parallel()
	file := write(t, "[payments.stripe]\nweb_hook_secret = 'whsec_1'\nkey_id = 'x'\n[payments.wechat]\nh5_file = 'x'\n[payments.sofort]\nkey = 'x'\n")
	_, _, err := Parse([]string{"--config", file}, env())
	if err == nil {
		t.Fatal("no error")
	}
	for key, nearest := range map[string]string{
		"payments.stripe.web_hook_secret": "payments.stripe.webhook_secret", "payments.stripe.key_id": "payments.stripe.key",
		"payments.wechat.h5_file": "payments.wechat.h5", "payments.sofort.key": "payments.stripe.key",
	} {
		if want := file + `: there is no setting "` + key + `"; the nearest is "` + nearest + `"`; !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
}

func TestAFileThatWasNamedMustBeThere(t *testing.T) {
	t.Parallel()
	_, _, err := Parse([]string{"--config", filepath.Join(t.TempDir(), "none.toml")}, env())
	if err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("error is %v", err)
	}
}

func TestSecretsAreMaskedInEveryPlaceThatShowsThem(t *testing.T) {
	t.Parallel()
	c, settings, err := Parse(nil, env(
		"SECKILL_JWT_KEY", key,
		"SECKILL_JWT_PREVIOUS_KEYS", "old="+key,
		"SECKILL_DATABASE_URL", "postgres://shop:hunter2@db.example:5432/seckill?sslmode=require&sslpassword=hunter2",
		"SECKILL_REDIS_URL", "redis://:hunter2@a:6379,redis://:hunter2@b:6379",
	))
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(map[string]any{"config": c, "settings": settings})
	if err != nil {
		t.Fatal(err)
	}
	var logged strings.Builder
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("settings", slog.Any("key", c.JWTKey), slog.Any("url", c.DatabaseURL))
	for _, text := range []string{string(asJSON), logged.String(), fmt.Sprintf("%v %+v %#v", c, c, c.JWTKey)} {
		if strings.Contains(text, "hunter2") || strings.Contains(text, key) {
			t.Errorf("a secret shows in %s", text)
		}
	}
	if got, want := find(t, settings, "database-url").Value, "postgres://***@db.example:5432/seckill?sslmode=require&sslpassword=***"; got != want {
		t.Errorf("database url shows as %q, want %q", got, want)
	}
	if got, want := find(t, settings, "redis-url").Value, "redis://***@a:6379,redis://***@b:6379"; got != want {
		t.Errorf("redis url shows as %q, want %q", got, want)
	}
	if got, want := Secret("postgres://u:hunter2@a:1,b:2/shop?sslmode=require").String(), "postgres://***@a:1,b:2/shop?sslmode=require"; got != want {
		t.Errorf("several hosts are shown as %s, want %s", got, want)
	}
	if got, want := Secret("postgres:///shop?host=/run&password=hunter2").String(), "postgres:///shop?host=%2Frun&password=***"; got != want {
		t.Errorf("a socket is shown as %s, want %s", got, want)
	}
	if got, want := Secret("redis+sentinel://:hunter2@a:1,b:2/shop?db=1&sentinel_password=hunter2").String(), "redis+sentinel://***@a:1,b:2/shop?db=1&sentinel_password=***"; got != want {
		t.Errorf("sentinels show as %q, want %q", got, want)
	}
	if string(c.JWTKey) != key {
		t.Error("the value itself is lost")
	}
}

func TestEveryFieldIsASettingWithHelp(t *testing.T) {
	t.Parallel()
	_, settings, err := Parse(nil, env())
	if err != nil {
		t.Fatal(err)
	}
	groups := map[string]bool{}
	for _, g := range Groups() {
		groups[g.Key] = true
	}
	for _, s := range settings {
		if !groups[s.Group] || !strings.HasSuffix(s.Help, ".") || len(s.Help) < 15 {
			t.Errorf("%s: group %q, help %q", s.Flag, s.Group, s.Help)
		}
	}
	if len(settings) < 25 {
		t.Errorf("%d settings", len(settings))
	}
}

func TestMisspeltVariablesAreFound(t *testing.T) {
	t.Parallel()
	got := UnknownVariables([]string{"HOME=/", "SECKILL_HTP_ADDR=:1", "SECKILL_HTTP_ADDR=:1", "SECKILL_CONFIG=x", "SECKILL_TEST_REDIS_URL=x"})
	if diff := cmp.Diff([]string{"SECKILL_HTP_ADDR"}, got); diff != "" {
		t.Errorf("unknown (-want +got):\n%s", diff)
	}
}

func TestTheLimitOfOpenFilesLeavesRoomBesideConnections(t *testing.T) {
	t.Parallel()
	for files, want := range map[int][2]int{256: {192, 144}, 1024: {768, 576}, 20_000: {19_000, 17_000}, 65_536: {64_536, 62_536}} {
		if connections, sockets := Connections(files); [2]int{connections, sockets} != want {
			t.Errorf("%d files: %d connections and %d sockets, want %v", files, connections, sockets, want)
		}
	}
	if files, err := OpenFiles(); err != nil || files < 256 {
		t.Errorf("this process may open %d files, %v", files, err)
	}
}
