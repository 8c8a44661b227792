package config

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"seckill/internal/platform/accent"
)

// Theme are the settings of the shop's look.
type Theme struct {
	ShopName      string `group:"shop" placeholder:"NAME" help:"Name of the shop in the header and in the titles of its pages. Without it, Seckill, in Chinese 秒杀."`
	ThemeAccent   string `group:"shop" placeholder:"#RRGGBB" help:"Colour of the main button, of links and of outlines: #b3261e. Its contrast with white must be 4.5:1 or more; the shades for the pointer and for dark pages derive from it. A sale may have its own."`
	ThemeLogo     string `group:"shop" placeholder:"FILE" help:"Logo in the header, instead of the mark and the name: an SVG or PNG of at most 16 kB. It is shown 32 pixels high and at most 160 wide."`
	ThemeLogoDark string `group:"shop" placeholder:"FILE" help:"The logo on dark pages. Without it, SECKILL_THEME_LOGO."`
}

// maxShopName bounds the name in the header, in characters.
const maxShopName = 40

// logoTypes are the endings of files that can be a logo.
var logoTypes = []string{".svg", ".png"}

func (p *Problems) theme(c *Config) {
	if name := c.ShopName; !utf8.ValidString(name) || utf8.RuneCountInString(name) > maxShopName || strings.ContainsFunc(name, unicode.IsControl) {
		p.add("shop-name", "is unfit: write at most %d characters in one line", maxShopName)
	}
	if c.ThemeAccent != "" {
		if _, err := accent.Parse(c.ThemeAccent); err != nil {
			p.add("theme-accent", "%v", err)
		}
	}
	for flag, file := range map[string]string{"theme-logo": c.ThemeLogo, "theme-logo-dark": c.ThemeLogoDark} {
		if file != "" && !slices.Contains(logoTypes, path.Ext(file)) {
			p.add(flag, "is %q: give a file that ends in .svg or .png", file)
		}
	}
	if c.ThemeLogoDark != "" && c.ThemeLogo == "" {
		p.add("theme-logo-dark", "is set without SECKILL_THEME_LOGO")
	}
}
