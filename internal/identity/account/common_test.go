package account

import (
	"errors"
	"testing"

	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
)

func TestPasswordsThatAreGuessedFirstAreRefused(t *testing.T) {
	t.Parallel()
	for _, password := range []string{
		"password123", "P@ssw0rd!!", "passwordpassword", "qwertyuiop", "1234567890", "0987654321", "aaaaaaaaaaaa", "abcabcabcabc",
		"asdfghjkl;1", "Welcome2026!", "anna.smith99", "changeme123", "woaini1314520", "abcdefghijkl",
	} {
		if !common(password, "anna.smith@example.com") && !common(password, "annasmith@example.com") {
			t.Errorf("%q is taken", password)
		}
	}
	for _, password := range []string{goodPassword, "a long enough password", "tower-violin-46-mist", "Xk29-pLq7-vvN3", "我的密码是一只红色的猫咪"} {
		if common(password, "anna.smith@example.com") {
			t.Errorf("%q is refused", password)
		}
	}
	f := embedded(t)
	who := someone()
	who.Password = "Password2026!"
	_, err := f.store.Create(t.Context(), who, auth.Customer)
	if bad, ok := errors.AsType[fault.BadField](err); !ok || bad.Rule != fault.NotCommonPassword {
		t.Error(err)
	}
}
