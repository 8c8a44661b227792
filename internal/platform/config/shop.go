package config

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"seckill/internal/platform/accent"
)

// Shop are the settings of the shop's look and of its receipts.
type Shop struct {
	ShopName      string `name:"shop.name" aliases:"shop-name" group:"shop" placeholder:"NAME" help:"Name of the shop in the header and in the titles of its pages. Without it, Seckill, in Chinese 秒杀."`
	ThemeAccent   string `name:"shop.accent" aliases:"theme-accent" group:"shop" placeholder:"#RRGGBB" help:"Colour of the main button, of links and of outlines: #b3261e. Its contrast with white must be 4.5:1 or more; the shades for the pointer and for dark pages derive from it. A sale may have its own."`
	ThemeLogo     string `name:"shop.logo" aliases:"theme-logo" group:"shop" placeholder:"FILE" help:"Logo in the header, instead of the mark and the name: an SVG or PNG of at most 16 kB. It is shown 32 pixels high and at most 160 wide."`
	ThemeLogoDark string `name:"shop.logo-dark" aliases:"theme-logo-dark" group:"shop" placeholder:"FILE" help:"The logo on dark pages. Without it, shop.logo."`
	Storefront    string `name:"shop.storefront" group:"shop" placeholder:"URL" help:"Address of a buyer's page of an order in a shop of your own, with {id} or {number}: https://shop.example/orders/{number}. Payment providers and messages send buyers there. Without it, to the embedded shop."`
	SellerName    string `name:"shop.seller-name" aliases:"seller-name" group:"shop" placeholder:"NAME" help:"Name of the seller on receipts. Without it, receipts name none."`
	SellerDetails string `name:"shop.seller-details" aliases:"seller-details" group:"shop" placeholder:"LINES" help:"Address, registration and tax number of the seller on receipts; lines are separated by |."`
	SellerTaxName string `name:"shop.tax-name" aliases:"seller-tax-name" default:"VAT" group:"shop" help:"Name of the tax that prices contain, on receipts."`
	SellerTaxRate string `name:"shop.tax-rate" aliases:"seller-tax-rate" group:"shop" placeholder:"PERCENT" help:"Its rate in percent: 19, or 8.1. Without it, receipts name no tax."`
}

// SellerLines returns the lines of SellerDetails.
func (c *Config) SellerLines() (lines []string) {
	for line := range strings.SplitSeq(c.SellerDetails, "|") {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// maxShopName bounds the name in the header, in characters.
const maxShopName = 40

// logoTypes are the endings of files that can be a logo.
var logoTypes = []string{".svg", ".png"}

var taxRate = regexp.MustCompile(`^\d{1,2}(\.\d{1,2})?$`)

func (p *Problems) shop(c *Config) {
	if name := c.ShopName; !utf8.ValidString(name) || utf8.RuneCountInString(name) > maxShopName ||
		strings.ContainsFunc(name, unicode.IsControl) {
		p.add("shop.name", "is unfit: write at most %d characters in one line", maxShopName)
	}
	if c.ThemeAccent != "" {
		if _, err := accent.Parse(c.ThemeAccent); err != nil {
			p.add("shop.accent", "%v", err)
		}
	}
	for flag, file := range map[string]string{"shop.logo": c.ThemeLogo, "shop.logo-dark": c.ThemeLogoDark} {
		if file != "" && !slices.Contains(logoTypes, path.Ext(file)) {
			p.add(flag, "is %q: give a file that ends in .svg or .png", file)
		}
	}
	if c.ThemeLogoDark != "" && c.ThemeLogo == "" {
		p.add("shop.logo-dark", "is set without shop.logo")
	}
	if page := c.Storefront; page != "" {
		u, err := url.Parse(strings.NewReplacer("{id}", "id", "{number}", "number").Replace(page))
		if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || c.Production()) ||
			!strings.Contains(page, "{id}") && !strings.Contains(page, "{number}") {
			p.add("shop.storefront", "is unfit: write https://shop.example.com/orders/{number}, or {id} instead of the number")
		}
	}
	if rate := c.SellerTaxRate; rate != "" && (!taxRate.MatchString(rate) || c.SellerTaxName == "") {
		p.add("shop.tax-rate", "is %q: write a rate in percent, 19 or 8.1, and the name of the tax in shop.tax_name", rate)
	}
}
