package id_test

import (
	"errors"
	"testing"

	"seckill/internal/platform/id"
)

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "sal_", "sal_01jd8z3q4vftn8r2m5w6x7y8z9", "tsk_01m7wb09f5ez8agqk3pr5bvrg2", "sal_8zzzzzzzzzzzzzzzzzzzzzzzzz",
		"{s07}", "sal_01jd8z3q4vftn8r2m5w6x7y8z9\x00", "_", "a_b_c", "SAL_01JD8Z3Q4VFTN8R2M5W6X7Y8Z9",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		kind, u, err := id.Split(text)
		if err != nil {
			if !errors.Is(err, id.ErrMalformed) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if back := id.Format(kind, u); back != text {
			t.Fatalf("%q is read as %q: two names for one id", text, back)
		}
		if again, err := id.Parse(kind, text); err != nil || again != u {
			t.Fatalf("%q: split says %s, parse %s, %v", text, u, again, err)
		}
	})
}
