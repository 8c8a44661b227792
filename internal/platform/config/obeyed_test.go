package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// throughMethod lists the settings that the program reads with a method of Config.
var throughMethod = map[string]string{
	"SMTPURL": "SMTP", "SMTPPassword": "SMTP", "SMTPFrom": "SMTP", "SMTPTLS": "SMTP", "Profile": "Production", "Limits": "LimitsOn", "Sandbox": "SandboxOn", "JWTKey": "SigningKeys", "JWTPreviousKeys": "SigningKeys",
	"SellerDetails": "SellerLines", "CaptchaOrigins": "CaptchaSources", "StripeOrigins": "StripeSources", "PaymentServiceSecret": "ServiceSecret", "PaymentServiceCurrencies": "ServiceCurrencies", "Introspection": "WhoIntrospects", "Playground": "PlaygroundOn",
}

func TestEverySettingIsObeyedSomewhere(t *testing.T) {
	t.Parallel()
	read := map[string]bool{}
	for _, m := range regexp.MustCompile(`\b(?:cfg|Config)\.(\w+)`).FindAllStringSubmatch(programText(t), -1) {
		read[m[1]] = true
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		name := field.Name
		if name == "File" || field.Anonymous || field.Tag.Get("constant") != "" {
			continue // used by the source; a group of settings; ignored
		}
		reads := name
		if method, ok := throughMethod[name]; ok {
			reads = method
		}
		if !read[reads] {
			t.Errorf("%s: nothing reads it; drop the setting or obey it", name)
		}
	}
}

// programText returns the code of the commands and packages, except this one and tests.
func programText(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	for _, top := range []string{"../../../cmd", "../../../internal"} {
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				if d != nil && d.IsDir() && path == "../../../internal/platform/config" {
					return fs.SkipDir
				}
				return err
			}
			if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			raw, err := os.ReadFile(path)
			text.Write(raw)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return text.String()
}
