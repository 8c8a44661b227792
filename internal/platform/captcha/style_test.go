package captcha

import (
	"fmt"
	"reflect"
	"testing"
)

func TestImagesFollowTheSecretOfTheInstallation(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for n := range 200 {
		secret := fmt.Sprintf("the secret of installation %d", n)
		one, again := styleOf([]byte(secret)), styleOf([]byte(secret))
		if reflect.ValueOf(one.shape).Pointer() != reflect.ValueOf(again.shape).Pointer() {
			t.Errorf("%s: two shapes of curves", secret)
		}
		one.shape, again.shape = nil, nil
		text := fmt.Sprintf("%+v", one)
		if text != fmt.Sprintf("%+v", again) {
			t.Errorf("%s: two styles", secret)
		}
		if other, known := seen[text]; known {
			t.Errorf("%s and %s have one style", secret, other)
		}
		seen[text] = secret
	}
}
