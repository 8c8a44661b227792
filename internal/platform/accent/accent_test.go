package accent

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func TestAColourThatIsTooLightIsRefusedWithItsContrast(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"#ff6a00": "2.87", "#ffffff": "1.00", "#777777": "4.47",
	} {
		_, err := Parse(text)
		var light ContrastError
		if !errors.As(err, &light) || light.Bound() != want {
			t.Errorf("%s: %v, want %q", text, err, want)
			continue
		}
		if _, err := Parse(light.Near); err != nil || !strings.Contains(light.Error(), light.Near) {
			t.Errorf("%s: the colour that would do is refused: %v", text, err)
		}
	}
}

func TestOnlyAHexadecimalColourIsRead(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "red", "#fff", "2b34d9", "#2b34d9ff", "#2b34dg", "#000000;}*{color:#000000"} {
		var wrong FormatError
		if _, err := Parse(text); !errors.As(err, &wrong) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if a, err := Parse(" #2B34D9 "); err != nil || a.Color != "#2b34d9" || a.Light.Fill != a.Color {
		t.Errorf("capitals and blanks: %+v, %v", a, err)
	}
}

func TestEveryShadeCanBeRead(t *testing.T) {
	t.Parallel()
	read := 0
	for r := 0; r <= levels; r += 17 {
		for g := 0; g <= levels; g += 17 {
			for b := 0; b <= levels; b += 17 {
				text := rgb{float64(r) / levels, float64(g) / levels, float64(b) / levels}.String()
				a, err := Parse(text)
				if err != nil {
					continue
				}
				read++
				for name, ratio := range map[string]float64{
					"white on light fill":   contrast(of(a.Light.Fill), white),
					"white on light press":  contrast(of(a.Light.Press), white),
					"white on dark fill":    contrast(of(a.Dark.Fill), white),
					"white on dark press":   contrast(of(a.Dark.Press), white),
					"light text on page":    contrast(of(a.Light.Text), white),
					"light text on sunk":    contrast(of(a.Light.Text), lightSunk),
					"dark text on page":     contrast(of(a.Dark.Text), darkPage),
					"dark text on sunk":     contrast(of(a.Dark.Text), darkSunk),
					"dark fill on the page": contrast(of(a.Dark.Fill), darkPage) / leastFill * Least,
				} {
					if ratio < Least {
						t.Errorf("%s: %s has %.2f:1", text, name, ratio)
					}
				}
				if a.Light.Press == a.Light.Fill || a.Dark.Press == a.Dark.Fill {
					t.Errorf("%s: the pointer changes nothing: %+v", text, a)
				}
			}
		}
	}
	if read < 1000 {
		t.Errorf("only %d colours were read", read)
	}
}

func TestTheGroundsAreThoseOfTheShop(t *testing.T) {
	t.Parallel()
	css, err := os.ReadFile("../../../web/src/style.css")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"--color-page: light-dark(" + white.String() + ", " + darkPage.String() + ")",
		"--color-sunk: light-dark(" + lightSunk.String() + ", " + darkSunk.String() + ")",
	} {
		if !strings.Contains(string(css), want) {
			t.Errorf("style.css has not %s", want)
		}
	}
}
