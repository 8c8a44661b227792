package app

import (
	"fmt"
	"net/http"
	"sync"

	"seckill/internal/accent"
	"seckill/internal/config"
	"seckill/internal/server"
	"seckill/web"
)

// site and trialSite are packed once per binary, because tests build many processes.
var (
	site      = sync.OnceValues(func() (http.Handler, error) { return server.NewSite(web.Dist(), web.Version()) })
	trialSite = sync.OnceValues(func() (http.Handler, error) { return server.NewSite(web.Trial(), web.Version()) })
)

// newSite returns the handler of the shop's pages, with the brand of the installation.
func newSite(cfg *config.Config, brand web.Brand) (http.Handler, error) {
	packed, built := site, web.Dist
	if cfg.Production() && cfg.Sandbox == config.SandboxTrial {
		packed, built = trialSite, web.Trial
	}
	if brand.IsZero() {
		return packed()
	}
	pages, err := brand.Of(built())
	if err != nil {
		return nil, err
	}
	return server.NewSite(pages, web.Version())
}

// brandOf reads what the settings say of the shop's look.
func brandOf(cfg *config.Config) (web.Brand, error) {
	brand := web.Brand{Name: cfg.ShopName}
	var err error
	if cfg.ThemeAccent != "" {
		if brand.Accent, err = accent.Parse(cfg.ThemeAccent); err != nil {
			return brand, fmt.Errorf("%s %w", config.EnvName("theme-accent"), err)
		}
	}
	if cfg.ThemeLogo != "" {
		if brand.Logo, err = web.ReadLogo(cfg.ThemeLogo); err != nil {
			return brand, fmt.Errorf("%s: %w", config.EnvName("theme-logo"), err)
		}
	}
	if cfg.ThemeLogoDark != "" {
		if brand.LogoDark, err = web.ReadLogo(cfg.ThemeLogoDark); err != nil {
			return brand, fmt.Errorf("%s: %w", config.EnvName("theme-logo-dark"), err)
		}
	}
	return brand, nil
}
