package account

import (
	"net/netip"
	"testing"

	"seckill/internal/platform/captcha"
	"seckill/internal/platform/fault"
)

// One IPv6 customer holds up to 65,536 networks of 64 bits.
func TestOneIPv6CustomerCannotRegisterAtWill(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.limited()
		made, refused := 0, 0
		for n := range 40 {
			from := netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 0, 7, byte(n), byte(n * 31), 15: 1})
			_, err := f.Register(t.Context(), RegisterInput{NewUser: someone(), Captcha: f.answer(captcha.Register), Addr: from})
			switch {
			case err == nil:
				made++
			case fault.ReasonOf(err) == fault.TooManyTries:
				refused++
			default:
				t.Fatal(err)
			}
		}
		if refused == 0 || made > 3*registersPerAddress.Burst+5 {
			t.Errorf("40 addresses of one /48 made %d accounts, %d were refused", made, refused)
		}
	})
}
