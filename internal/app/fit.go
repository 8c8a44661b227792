package app

import (
	"errors"
	"fmt"
	"strings"

	"seckill/graph"
	"seckill/graph/generated"
	"seckill/graph/guard"
	"seckill/graph/scalar"
	"seckill/internal/identity/oidc"
	"seckill/internal/identity/oidc/issuer"
	"seckill/internal/pay/payment/setup"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/config"
	"seckill/internal/platform/media"
	"seckill/web"
)

// Fit checks everything that a server needs of its settings and of the files that they name, before it
// connects to a service. The error is nil or config.Problems. The doctor reports the same.
func Fit(cfg *config.Config, roleNames []string) error {
	var problems config.Problems
	add := func(err error) {
		if err == nil {
			return
		}
		for line := range strings.SplitSeq(err.Error(), "\n") {
			problems = append(problems, config.MaskText(line))
		}
	}
	roles, err := rolesOf(roleNames)
	add(err)
	invalid := cfg.Validate(config.NeedDatabase, config.NeedRedis, config.NeedKeys)
	add(invalid)
	if invalid == nil { // otherwise a key that is missing would be reported twice
		_, err = setup.Providers(cfg, strings.TrimSuffix(cfg.PublicURL, "/"), clock.System{}, nil)
		add(wrapped("payments", err))
		add(wrapped(config.Name("media"), media.Check(cfg.Media.Reveal())))
	}
	if roles.API {
		add(fitAPI(cfg))
	}
	if len(problems) == 0 {
		return nil
	}
	return problems
}

// fitAPI checks what only the API role reads.
func fitAPI(cfg *config.Config) error {
	var errs []error
	if cfg.OIDC != "" {
		_, err := oidc.ReadProviders(cfg.OIDC, !cfg.Production())
		errs = append(errs, wrapped(config.Name("oidc"), err))
	}
	if cfg.TokenIssuers != "" {
		_, err := issuer.Read(cfg.TokenIssuers, !cfg.Production())
		errs = append(errs, wrapped(config.Name("token-issuers"), err))
	}
	brand, err := brandOf(cfg)
	if err == nil && !brand.IsZero() {
		_, err = brand.Of(web.Dist())
	}
	return errors.Join(append(errs, err, fitDocuments(cfg))...)
}

// fitDocuments checks the settings that name parts of the schema.
func fitDocuments(cfg *config.Config) error {
	if len(cfg.RateLimits) == 0 && cfg.TrustedDocuments == "" {
		return nil
	}
	schema := generated.NewExecutableSchema(generated.Config{}).Schema()
	err := wrapped(config.Name("rate-limits"), graph.CheckRateLimits(schema, rateLimits(cfg)))
	if cfg.TrustedDocuments == "" {
		return err
	}
	g, broken := guard.New(guard.Options{Schema: schema, Scalars: scalar.Good()})
	if broken != nil {
		return errors.Join(err, broken)
	}
	documents, unreadable := (&guard.ManifestFile{Path: cfg.TrustedDocuments}).Read()
	if unreadable == nil {
		unreadable = g.Trust(documents)
	}
	return errors.Join(err, wrapped(config.Name("trusted-documents"), unreadable))
}

// wrapped returns an error with the setting that it is about.
func wrapped(setting string, err error) error {
	if err == nil || strings.HasPrefix(err.Error(), setting) {
		return err
	}
	return fmt.Errorf("%s: %w", setting, err)
}
